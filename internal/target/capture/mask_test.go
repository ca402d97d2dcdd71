package capture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMask has commands as clients send them: what stays, and in which shape the rest is replaced.
func TestMask(t *testing.T) {
	m := NewMask()
	hide := func(command string) (string, string) {
		r := Record{commands: [][]string{strings.Split(command, " ")}}
		why := m.hide(&r)
		return strings.Join(r.commands[0], " "), why
	}
	for command, shape := range map[string]string{
		"SET user:17:name Bob7 EX 60 NX":                `^SET [a-z]{4}:[1-9]\d:[a-z]{4} [A-Z][a-z]{2}\d EX 60 NX$`,
		"get {user7}.x":                                 `^get \{[a-z]{4}\d\}\.[a-z]$`,
		"ZADD board NX CH 1.5 ann -2 bob":               `^ZADD [a-z]{5} NX CH 1.5 [a-z]{3} -2 [a-z]{3}$`,
		"ZUNIONSTORE dst 2 ab cd WEIGHTS 1 2":           `^ZUNIONSTORE [a-z]{3} 2 [a-z]{2} [a-z]{2} WEIGHTS 1 2$`,
		"ZRANGEBYSCORE board (1 +inf LIMIT 0 10":        `^ZRANGEBYSCORE [a-z]{5} \(1 \+inf LIMIT 0 10$`,
		"LINSERT list BEFORE here this":                 `^LINSERT [a-z]{4} BEFORE [a-z]{4} [a-z]{4}$`,
		"BLPOP one two 5":                               `^BLPOP [a-z]{3} [a-z]{3} 5$`,
		"GEOADD places 13.36 38.11 Palermo 15.0 37.5 C": `^GEOADD [a-z]{6} 13.36 38.11 [A-Z][a-z]{6} 15.0 37.5 [A-Z]$`,
	} {
		masked, why := hide(command)
		require.Empty(t, why, command)
		require.Regexp(t, shape, masked)
	}
	for _, command := range []string{"EVAL return 0", "ZRANGE board [ann [bob BYLEX", "SINTERCARD 9 a", "GETEX k NAME", "SCAN 0 MATCH user:*", "NOSUCH k"} {
		_, why := hide(command)
		require.Equal(t, "not covered by --anonymize: "+strings.Fields(command)[0], why)
	}
	a, _ := hide("GET {user7}.x")
	b, _ := hide("MGET user7 {user7}.y")
	tag := a[strings.Index(a, "{")+1 : strings.Index(a, "}")]
	require.True(t, strings.HasPrefix(b, "MGET "+tag+" {"+tag+"}."), "%s; %s", a, b)
}

// TestMaskIsOneToOne has all texts of some shapes.
func TestMaskIsOneToOne(t *testing.T) {
	m := NewMask()
	for _, shape := range []string{"%d", "a%d", "%05d", "\xff%db", "-%d"} {
		found := map[string]bool{}
		for i := range 20_000 {
			found[m.text(fmt.Sprintf(shape, i))] = true
		}
		require.Len(t, found, 20_000, shape)
	}
}
