package dialect

import (
	"fmt"
	"regexp"
	"strings"
)

// Selector selects Prometheus series: those of a metric with certain labels.
type Selector struct {
	Metric string
	Labels map[string]string
}

var (
	metricPattern = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelPattern  = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\[\\n"])*)"\s*`)
	unescapeLabel = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// ParseSelector reads a metric's name, optionally followed in braces by labels that its series must have: rpc_total{code="5",zone="a"}.
func ParseSelector(text string) (Selector, error) {
	s := Selector{Labels: map[string]string{}}
	s.Metric = metricPattern.FindString(text)
	rest := strings.TrimSpace(text[len(s.Metric):])
	switch {
	case s.Metric == "":
		return s, fmt.Errorf("no metric's name at its beginning")
	case rest == "":
		return s, nil
	case rest[0] != '{' || rest[len(rest)-1] != '}':
		return s, fmt.Errorf("%s after the metric's name is not {LABEL=\"VALUE\",…}", Quote(rest))
	}
	for rest = rest[1 : len(rest)-1]; strings.TrimSpace(rest) != ""; {
		m := labelPattern.FindStringSubmatch(rest)
		if m == nil {
			return s, fmt.Errorf("%s is not LABEL=\"VALUE\"", Quote(rest))
		}
		if _, twice := s.Labels[m[1]]; twice {
			return s, fmt.Errorf("label %s is there twice", m[1])
		}
		s.Labels[m[1]] = unescapeLabel.Replace(m[2])
		if rest = rest[len(m[0]):]; rest != "" && rest[0] != ',' {
			return s, fmt.Errorf("%s where a comma should be", Quote(rest))
		}
		rest = strings.TrimPrefix(rest, ",")
	}
	return s, nil
}
