package rundir

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
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

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug keeps ASCII letters and digits, in lower case, and replaces what is between them with hyphens.
func slug(plan string) string {
	const most = 64
	s := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(plan), "-"), "-")
	return cmp.Or(strings.TrimSuffix(s[:min(len(s), most)], "-"), "plan")
}

var validID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// checkID makes sure that a name stays inside the root.
func checkID(id string) error {
	if !validID.MatchString(id) {
		return fmt.Errorf("run %q: a name has 1 to 128 letters, digits, '.', '-' and '_', and does not begin with a dot", id)
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
