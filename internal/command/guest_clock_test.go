package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
)

// slowPlan is small enough for a machine with an emulated processor.
const slowPlan = `
plan "slow" {}
variable "endpoints" { type = list(string) }
variable "duration" { default = "4s" }
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = "60s"
}` + hundredD + fillD + `
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	open {
		sessions = 4
		rate     = "40/s"
		arrivals = "constant"
		duration = var.duration
	}
}
`

// TestTimeOfDayIsOff: a worker on a machine whose time of day is 5 s ahead of the coordinator's, and another after the machine's time of day was set to 5 s
// behind, join over TLS and run a plan. Nothing is missing, and load and verdict are unaffected. Clocks are compared by their monotonic readings, which
// began when the machines did.
func TestTimeOfDayIsOff(t *testing.T) {
	t.Parallel()
	exe, err := exec.LookPath("loadgen")
	require.NoError(t, err)
	guests := NewGuests(t, map[string]string{"loadgen": exe})
	plan := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(plan, []byte(slowPlan), 0o600))
	n := newNetworked(t, 3, 1, plan)
	before := n.calls()[0]
	l := n.run("--listen", "0.0.0.0:7464", "--workers", "2", "--wait", "5m", "--lease", "1m")
	line := invited(t, l)
	steps := []int{5, -10}
	var script strings.Builder
	for i, step := range steps {
		fmt.Fprintf(&script, `read u rest < /proc/uptime; a=$(date +%%s); date -s @$((a+%[1]d)) > /tmp/set; b=$(date +%%s); read v rest < /proc/uptime; echo WALL $a $b ${u%%%%.*} ${v%%%%.*}
{ HOME=/tmp/w%[2]d /loadgen worker --name w%[2]d --once --loops 1 %[3]s; echo WORKER exit $?; } &
until grep -q ':1D28 01 ' /proc/net/tcp; do sleep 0.2; done
sleep 3 # it enrols and joins
`, step, i+1, line)
	}
	guest := guests.BootOn(n.Machines[1], script.String()+"wait\n")
	r := l.result(5 * time.Minute)
	said := guest.Wait()
	require.Equal(t, 2, strings.Count(said, "WORKER exit 0\n"), said)
	walls := regexp.MustCompile(`WALL (\d+) (\d+) (\d+) (\d+)\n`).FindAllStringSubmatch(said, -1)
	require.Len(t, walls, len(steps), said)
	for i, step := range steps {
		var at [4]int64 // the time of day before and after it was set, and around these the time since the machine began
		for j := range at {
			at[j], err = strconv.ParseInt(walls[i][j+1], 10, 64)
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, at[1]-at[0], int64(step))
		require.LessOrEqual(t, at[1]-at[0], int64(step)+at[3]-at[2]+2, "it was set, and then looked at")
		require.Less(t, r.Fleet[i].ClockUncertaintySeconds, 5.0, "the time of day is no part of it")
	}

	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Empty(t, r.Losses)
	require.EqualValues(t, 160, r.Phase["gets"].Op["get"].Due)
	after := n.calls()[0]
	fill, gets := r.Phase["fill"].Op["put"], r.Phase["gets"].Op["get"]
	require.Equal(t, after["put"]-before["put"], fill.OK)
	require.Equal(t, after["get"]-before["get"], gets.OK)
}

// TestMachineThatSleeps: the machine of one of two workers is suspended in the middle of a load, for longer than the lease. The other worker carries
// on. The clock that the lease is measured with stood still meanwhile; nevertheless the worker sends nothing more once its machine is awake.
func TestMachineThatSleeps(t *testing.T) {
	t.Parallel()
	exe, err := exec.LookPath("loadgen")
	require.NoError(t, err)
	guests := NewGuests(t, map[string]string{"loadgen": exe})
	plan := filepath.Join(t.TempDir(), "plan.hcl")
	gets := regexp.MustCompile(`(?s)phase "fill".*?\n}\n`).ReplaceAllString(slowPlan, "") // so that a connection to the server is one of the load
	require.NoError(t, os.WriteFile(plan, []byte(gets), 0o600))
	n := newNetworked(t, 4, 1, plan)
	before := n.calls()[0]
	l := n.run("--listen", "0.0.0.0:7464", "--workers", "2", "--wait", "5m", "-var", "duration=40s")
	line := invited(t, l)
	ours := n.worker(n.Machines[1], "w1", line)
	guest := guests.BootOn(n.Machines[2], fmt.Sprintf(`
/loadgen worker --name w2 --once --loops 1 %s &
until grep -q ':18EB 01 ' /proc/net/tcp; do sleep 0.2; done
sleep 5
before=$(date +%%s)
echo +20 > /sys/class/rtc/rtc0/wakealarm
echo mem > /sys/power/state
echo SLEPT $(($(date +%%s)-before)) seconds, $(cat /sys/power/suspend_stats/success) time
wait $!
`, line))
	r := l.result(5 * time.Minute)
	said := guest.Wait()
	require.Zero(t, ours.wait(60*time.Second), "%s", &ours.stderr)
	require.Regexp(t, `SLEPT (19|2\d) seconds, 1 time\n`, said)

	calls, op := n.calls()[0]["get"]-before["get"], r.Phase["gets"].Op["get"]
	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	require.Len(t, r.Losses, 1)
	require.Equal(t, "w2", r.Losses[0].Worker)
	require.GreaterOrEqual(t, calls, op.OK)
	require.LessOrEqual(t, calls, op.Sent+r.Losses[0].UnseenOps)
	require.Less(t, r.Losses[0].UnseenOps, uint64(15*20), "the gets that it had to do after the sleep")
}
