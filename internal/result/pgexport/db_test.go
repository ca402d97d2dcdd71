package pgexport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A remote database is not spoken to in cleartext unless its URL says so.
func TestElsewhereWantsTLS(t *testing.T) {
	for url, name := range map[string]string{
		"postgres://u:p@db.example.org/team":                     "db.example.org",
		"postgres://u:p@10.0.0.7:5433/team":                      "10.0.0.7",
		"postgres://u:p@/team?host=db.example.org":               "db.example.org",
		"postgresql://u:p@db.example.org/team?connect_timeout=3": "db.example.org",
		"postgres://u:p@db.example.org/team?sslmode=verify-full": "db.example.org",
		"postgres://u:p@db.example.org/team?sslmode=disable":     "",
		"postgres://u:p@localhost/team?sslmode=disable":          "",
		"postgres://u:p@/team?host=/var/run/postgresql":          "",
		"postgres://u:p@db.example.org/team?":                    "db.example.org",
		"postgres://u:p@db.example.org/team?ssl=true&":           "db.example.org",
		"postgres://u:p@/team?host=db.example.org;":              "db.example.org;",
	} {
		t.Setenv("PGSSLMODE", "")
		t.Setenv("PGHOST", "")
		config, err := parse(url)
		require.NoError(t, err, url)
		if name == "" {
			require.Nil(t, config.TLSConfig, url)
			continue
		}
		require.NotNil(t, config.TLSConfig, url)
		require.Equal(t, name, config.TLSConfig.ServerName, url)
		require.False(t, config.TLSConfig.InsecureSkipVerify, url)
		for _, other := range config.Fallbacks {
			require.NotNil(t, other.TLSConfig, "%s: nothing in the clear afterwards", url)
		}
	}
}

// The URL of another machine's database gets an sslmode, and is otherwise as it was written.
func TestSettingsArriveAsWritten(t *testing.T) {
	config, err := parse("postgres://u:p@db.example.org/a+team?options=-c%20jit%3Doff&application_name=a+b%2Bc%20d")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"options": "-c jit=off", "application_name": "a+b+c d"}, config.RuntimeParams)
	require.Equal(t, "a+team", config.Database)
}

// Whatever is wrong with a URL, the error does not repeat it.
func TestErrorsHoldNoPassword(t *testing.T) {
	for _, url := range []string{
		"postgres://u:s3cret@host:port/db", "postgres://u:s3cret@/db?port=s3cret", "postgres://u:s3%zzcret@host/db", "mysql://u:s3cret@host/db",
		"u:s3cret@host", "host=h password=s3cret", "postgres://u:s3cret@host/db?sslmode=s3cret", "postgres://u@host/db?password=s3cret&sslmode=x",
	} {
		_, err := parse(url)
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "cret", url)
	}
}
