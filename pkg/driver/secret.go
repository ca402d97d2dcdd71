package driver

import (
	"log/slog"
	"regexp"
)

// Secret is the name of a secret in a driver's config. The plan holds only the name. The value is looked up where the load runs, when a connection
// needs it.
type Secret struct {
	Name string `cty:"secret" json:"secret"`
}

func (s Secret) String() string { return "secret(" + s.Name + ")" }

// LogValue limits a log line to the name.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// secretIn matches what stands for a secret in a form's text.
var secretIn = regexp.MustCompile(`\{secret\.([A-Z][A-Z0-9_]{0,63})\}`)

// SecretsIn lists the secrets that a text may name.
func SecretsIn(text string) (names []string) {
	for _, match := range secretIn.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}
