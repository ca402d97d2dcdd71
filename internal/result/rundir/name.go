package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// stamp is the format of the start time in an ID, which sorts as text.
const stamp = "20060102T150405Z"

// NewID returns a name for a run of the plan that starts now: the time to the second, the plan's name and 32 random bits, as in
// 20261120T173438Z-hydra-m4-4f2a09c7. Names sort by time. Checked values hold a hash of it, which tells whose they are.
func NewID(now time.Time, plan string) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return fmt.Sprintf("%s-%s-%x", now.UTC().Format(stamp), slug(plan), random)
}

// slug keeps ASCII letters and digits, in lower case, and replaces what is between them with hyphens.
func slug(plan string) string {
	const most = 64
	var b strings.Builder
	for _, r := range strings.ToLower(plan) {
		switch letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'; {
		case b.Len() == most:
		case letter:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "plan"
}

// checkID makes sure that a name stays inside the root: letters, digits, dots, hyphens and underscores, and no dot first.
func checkID(id string) error {
	const most = 128
	if id == "" || len(id) > most || id[0] == '.' {
		return fmt.Errorf("run %q: a name has 1 to %d characters and does not begin with a dot", id, most)
	}
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
		default:
			return fmt.Errorf("run %q: a name has letters, digits, '.', '-' and '_' only, not %q", id, r)
		}
	}
	return nil
}

// StartOf returns the time in an ID; zero if there is none.
func StartOf(id string) time.Time {
	first, _, _ := strings.Cut(id, "-")
	t, err := time.Parse(stamp, first)
	if err != nil {
		return time.Time{}
	}
	return t
}

// DefaultRoot returns the default directory for runs: loadgen/runs under the user's state directory, $XDG_STATE_HOME or ~/.local/state (XDG Base
// Directory Specification 0.8, which says to ignore a relative $XDG_STATE_HOME).
func DefaultRoot(getenv func(string) string) (string, error) {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("find the directory for runs: neither XDG_STATE_HOME nor HOME is set")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "loadgen", "runs"), nil
}
