package driver

import "log/slog"

// Secret is the name of a secret in a driver's config. The plan holds only the name. The value is looked up where the load runs, when a connection
// needs it.
type Secret struct {
	Name string `cty:"secret" json:"secret"`
}

func (s Secret) String() string { return "secret(" + s.Name + ")" }

// LogValue limits a log line to the name.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
