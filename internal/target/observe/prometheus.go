package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	maxPage = 64 << 20 // bytes of an endpoint's answer
	maxLine = 1 << 20
)

// prometheus reads series from an endpoint.
type prometheus struct {
	url    string
	fields []plan.Field
	wanted []dialect.Selector // by field
	wrong  error
	client *http.Client
}

func newPrometheus(o *plan.Observe) *prometheus {
	p := &prometheus{url: o.URL, fields: o.Fields, client: &http.Client{
		// No proxy: the endpoint is part of what is measured. No compression: it takes the server time, and a small answer may expand to a large one.
		Transport:     &http.Transport{MaxConnsPerHost: 1, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, f := range o.Fields {
		s, err := dialect.ParseSelector(f.Series)
		p.wrong = errors.Join(p.wrong, err)
		p.wanted = append(p.wanted, s)
	}
	return p
}

func (p *prometheus) Of() string { return p.url }

func (p *prometheus) Close() { p.client.CloseIdleConnections() }

// Take adds up the series that each field selects.
func (p *prometheus) Take(ctx context.Context) (value map[string]float64, missing map[string]string) {
	if p.wrong != nil {
		return nothing("%v", p.wrong)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nothing("%v", err)
	}
	request.Header.Set("Accept", "text/plain; version=0.0.4")
	response, err := p.client.Do(request)
	if err != nil {
		if what, ok := errors.AsType[*url.Error](err); ok { // it repeats the URL
			err = what.Err
		}
		return nothing("%v", err)
	}
	defer response.Body.Close()
	f, sums := newFigures(), make([]sum, len(p.wanted))
	if response.StatusCode == http.StatusOK {
		err = p.read(response.Body, sums)
	} else {
		err = fmt.Errorf("the endpoint says %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	for i, field := range p.fields {
		switch wrong := errors.Join(err, sums[i].wrong); {
		case wrong != nil:
			f.missing[field.Name] = wrong.Error()
		case !sums[i].found:
			f.missing[field.Name] = "there is no series " + field.Series
		default:
			f.set(field.Name, sums[i].value)
		}
	}
	return f.value, f.missing
}

// sum adds up the series of a field.
type sum struct {
	value float64
	found bool
	wrong error // with the first line that is none
}

// add adds what follows the metric's name on a line.
func (s *sum) add(line, rest string, labels map[string]string) {
	v, selected, err := sample(rest, labels)
	switch {
	case err != nil && s.wrong == nil:
		s.wrong = fmt.Errorf("line %.80q: %w", line, err)
	case selected:
		s.value += v
		s.found = true
	}
}

// read parses the text format (https://prometheus.io/docs/instrumenting/exposition_formats/), as far as needed, into sums by field.
func (p *prometheus) read(r io.Reader, sums []sum) error {
	body := &io.LimitedReader{R: r, N: maxPage + 1}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimLeft(lines.Text(), " \t")
		for i, want := range p.wanted {
			if rest, ok := strings.CutPrefix(line, want.Metric); ok && rest != "" && strings.ContainsRune("{ \t", rune(rest[0])) {
				sums[i].add(line, rest, want.Labels)
			}
		}
	}
	if body.N == 0 {
		return fmt.Errorf("the answer goes on beyond %d bytes", maxPage)
	}
	return lines.Err()
}

// sample parses what follows a metric's name: labels, a value and perhaps a timestamp. It skips an exemplar, which OpenMetrics allows behind a '#'.
// selected says that labels are among the sample's.
func sample(rest string, labels map[string]string) (v float64, selected bool, err error) {
	found := 0
	rest = strings.TrimLeft(rest, " \t")
	if strings.HasPrefix(rest, "{") {
		end := labelsEnd(rest)
		if end < 0 {
			return 0, false, errors.New("labels without an end")
		}
		s, err := dialect.ParseSelector("m" + rest[:end])
		if err != nil {
			return 0, false, err
		}
		for name, want := range labels {
			if got, ok := s.Labels[name]; ok && got == want {
				found++
			}
		}
		rest = rest[end:]
	}
	rest, _, _ = strings.Cut(rest, "#")
	words := strings.Fields(rest)
	if len(words) == 0 || len(words) > 2 {
		return 0, false, errors.New("not a value, and perhaps a time")
	}
	v, err = strconv.ParseFloat(words[0], 64)
	return v, found == len(labels), err
}

// labelsEnd returns where labels end: after the first brace outside a value.
func labelsEnd(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i + 1
		}
	}
	return -1
}
