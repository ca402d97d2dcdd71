package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// stamp is the form of the start time in an id: sortable as text.
const stamp = "20060102T150405Z"

// NewID returns a name for a run of the named plan that starts now: its time to the second, the plan and four random digits, as
// in 20261120T173438Z-hydra-m4-4f2a. Names sort by time. Two runs of a plan in one second get the same name once in 65,536 times;
// [Create] refuses the second.
func NewID(now time.Time, plan string) string {
	var random [2]byte
	rand.Read(random[:]) // never fails
	return fmt.Sprintf("%s-%s-%x", now.UTC().Format(stamp), slug(plan), random)
}

// slug keeps the letters and digits of ASCII, in lower case, and joins what is between them by hyphens.
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

// checkID keeps a name inside the root: letters, digits, dots, hyphens and underscores, not a dot first.
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

// startOf returns the time in an id, if it has one.
func startOf(id string) time.Time {
	first, _, _ := strings.Cut(id, "-")
	t, err := time.Parse(stamp, first)
	if err != nil {
		return time.Time{}
	}
	return t
}

// DefaultRoot returns the directory that holds runs unless another is asked for: loadgen/runs under the user's state directory,
// $XDG_STATE_HOME or ~/.local/state (XDG Base Directory Specification 0.8; a relative $XDG_STATE_HOME is ignored, as it says).
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
