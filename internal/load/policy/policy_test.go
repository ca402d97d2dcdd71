package policy_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/policy"
)

func parse(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, diags := policy.Parse([]byte(text), "p.hcl")
	require.False(t, diags.HasErrors(), "%v", diags)
	return p
}

const whole = `
targets          = ["10.0.0.0/8:6379", "[2001:db8::/32]:6379-6400", "127.0.0.1:7000", "unix:///run/redis.sock"]
rate             = "200k/s"
commands         = ["get", "SET"]
sessions         = 1000
connections      = 4000
bytes_per_second = "500MB"
duration         = "1h30m"
memory           = "4GiB"
log_bytes        = "64GiB"
lease            = "30s"
files            = "/srv/files"
log_root         = "/mnt/pmem"
`

func TestPolicyIsReadAndPrinted(t *testing.T) {
	p := parse(t, whole)
	require.Len(t, p.Targets, 4)
	targets := p.Targets
	p.Targets = nil
	require.Equal(t, &policy.Policy{
		Commands: []string{"GET", "SET"}, Rate: 200_000, Sessions: 1000, Connections: 4000, Bytes: 500e6, Duration: 90 * time.Minute, Memory: 4 << 30, LogBytes: 64 << 30,
		Lease: 30 * time.Second, Files: "/srv/files", LogRoot: "/mnt/pmem",
	}, p)
	p.Targets = targets
	var printed bytes.Buffer
	require.NoError(t, p.Print(&printed))
	require.Equal(t, p, parse(t, printed.String()), printed.String())

	least := parse(t, "targets = []")
	printed.Reset()
	require.NoError(t, least.Print(&printed))
	require.Contains(t, printed.String(), "# rate: not bounded\n")
	require.Equal(t, least, parse(t, printed.String()))
}

func TestPolicyRefusesWhatIsNone(t *testing.T) {
	for text, why := range map[string]string{
		"":                                     "targets is missing",
		`targets = ["10.0.0.0/8"]`:             "is not a place",
		`targets = ["10.0.0.0/33:6379"]`:       "is not a place",
		`targets = ["*:6379"]`:                 "is not a place",
		`targets = [":6379"]`:                  "is not a place",
		`targets = ["a:0"]`:                    "is not a place",
		`targets = ["a:9-1"]`:                  "is not a place",
		`targets = ["fe80::1%eth0:6379"]`:      "is not a place",
		`targets = ["unix://relative"]`:        "is not a place",
		`target = ["a:1"]`:                     "unknown attribute",
		"targets = []\nrate = 0":               "it allows nothing",
		"targets = []\nsessions = -1":          "it allows nothing",
		"targets = []\nrate = \"fast\"":        "is not a rate",
		"targets = []\nfiles = \"here\"":       "is not absolute",
		"targets = []\nlog_root = \"\"":        "is not absolute",
		"targets = []\nduration = \"forever\"": "is not a duration",
		"targets = []\nplan {}":                "unknown block",
		"targets = [":                          "",
		strings.Repeat("(", 10_000):            "",
	} {
		p, diags := policy.Parse([]byte(text), "p.hcl")
		require.True(t, diags.HasErrors(), text)
		require.Nil(t, p, text)
		require.Contains(t, diags.Error(), why, text)
	}
}

func TestPolicyAdmits(t *testing.T) {
	p := parse(t, whole)
	for _, to := range []string{"10.0.0.1:6379", "10.255.255.255:6379", "[::ffff:10.1.2.3]:6379", "[2001:db8::1]:6379", "[2001:db8:ffff::1]:6400", "127.0.0.1:7000"} {
		require.NoError(t, p.Admit(netip.MustParseAddrPort(to), ""), to)
	}
	require.NoError(t, p.Admit(netip.AddrPort{}, "/run/redis.sock"))
	require.NoError(t, (*policy.Policy)(nil).Admit(netip.MustParseAddrPort("169.254.169.254:80"), ""))
}

// TestPolicyCannotBePassedBy tries addresses that stand for others, or are close to allowed ones. The policy itself is as generous as possible.
func TestPolicyCannotBePassedBy(t *testing.T) {
	generous := parse(t, `targets = ["0.0.0.0/0:1-65535", "[::/0]:1-65535"]`)
	narrow := parse(t, whole)
	for _, c := range []struct {
		p  *policy.Policy
		to string
	}{
		{generous, "169.254.169.254:80"},
		{generous, "169.254.0.1:6379"},
		{generous, "[::ffff:169.254.169.254]:80"},
		{generous, "[::ffff:a9fe:a9fe]:80"},
		{generous, "[::169.254.169.254]:80"},
		{generous, "[::ffff:0:169.254.169.254]:80"},
		{generous, "[64:ff9b::169.254.169.254]:80"},
		{generous, "[64:ff9b::a9fe:a9fe]:80"},
		{generous, "[64:ff9b:1::a9fe:a9fe]:80"},
		{generous, "[64:ff9b:1:a9fe:00a9:fe00::]:80"},
		{generous, "[2002:a9fe:a9fe::1]:80"},
		{generous, "[2001:0:a9fe:a9fe::1]:80"},
		{generous, "[2001:0:102:304:0:0:5601:5601]:80"}, // inverted
		{generous, "[2001:db8::5efe:169.254.169.254]:80"},
		{generous, "[2001:db8::200:5efe:169.254.169.254]:80"},
		{generous, "[fe80::1]:6379"},
		{generous, "[fe80::1%eth0]:6379"},
		{generous, "[fe80::1%lo]:6379"},
		{generous, "[febf::1]:6379"},
		{generous, "[fec0::1]:6379"},
		{generous, "224.0.0.1:11211"},
		{generous, "239.255.255.250:1900"},
		{generous, "[ff02::1]:6379"},
		{generous, "[ff05::2]:6379"},
		{generous, "[::ffff:224.0.0.1]:11211"},
		{generous, "[2002:e000:1::]:11211"},
		{generous, "255.255.255.255:6379"},
		{generous, "[::ffff:255.255.255.255]:6379"},
		{generous, "0.0.0.0:6379"},
		{generous, "0.1.2.3:6379"},
		{generous, "[::]:6379"},
		{generous, "[::ffff:0.0.0.0]:6379"},
		{generous, "[64:ff9b::]:6379"},
		{generous, "[fd00:ec2::254]:80"},
		{generous, "[fd20:ce::254]:80"},
		{generous, "100.100.100.200:80"},
		{generous, "[::ffff:100.100.100.200]:80"},
		{generous, "192.0.0.192:80"},
		{generous, "168.63.129.16:80"},
		{generous, "[64:ff9b::168.63.129.16]:32526"},
		{narrow, "10.0.0.1:6380"},
		{narrow, "9.255.255.255:6379"},
		{narrow, "11.0.0.0:6379"},
		{narrow, "127.0.0.1:6379"},
		{narrow, "127.0.0.2:7000"},
		{narrow, "[::1]:7000"},
		{narrow, "[::ffff:127.0.0.2]:7000"},
		{narrow, "[2001:db9::1]:6379"},
		{narrow, "[2001:db8::1]:6401"},
		{narrow, "[2001:db8::1]:6378"},
		{narrow, "[64:ff9b::10.0.0.1]:6379"},
		{narrow, "[2002:a00:1::]:6379"},
		{narrow, "[::10.0.0.1]:6379"},
		{narrow, "[2001:db8::5efe:11.0.0.1]:6379"}, // listed, and leads to what is not
	} {
		require.ErrorContains(t, c.p.Admit(netip.MustParseAddrPort(c.to), ""), "this worker's policy: ", c.to)
	}
	for _, socket := range []string{"/run/redis.sock2", "/run/../run/redis.sock", "run/redis.sock", "/RUN/redis.sock", "@/run/redis.sock"} {
		require.ErrorContains(t, narrow.Admit(netip.AddrPort{}, socket), "targets: unix://"+socket+" is not among them")
	}
	require.Error(t, generous.Admit(netip.AddrPort{}, "/run/redis.sock"))
	require.Error(t, generous.Admit(netip.AddrPort{}, ""))
}

// TestPolicyOfNames resolves a name when a connection is made.
func TestPolicyOfNames(t *testing.T) {
	p := parse(t, `targets = ["localhost:6379", "name.invalid:6379"]`)
	require.NoError(t, p.Admit(netip.MustParseAddrPort("127.0.0.1:6379"), ""))
	require.Error(t, p.Admit(netip.MustParseAddrPort("192.0.2.1:6379"), ""))
}

func TestPolicyChecksNeeds(t *testing.T) {
	p := parse(t, whole)
	require.NoError(t, p.Check(policy.Need{Rate: 200_000, Sessions: 1000, Connections: 4000, Duration: 90 * time.Minute, LogBytes: 64 << 30}))
	for want, n := range map[string]policy.Need{
		"this worker's policy: rate: 200000.5/s is more than 200000/s":           {Rate: 200_000.5},
		"this worker's policy: sessions: 1001 is more than 1000":                 {Sessions: 1001},
		"this worker's policy: connections: 4001 is more than 4000":              {Connections: 4001},
		"this worker's policy: duration: 1h30m1s is more than 1h30m0s":           {Duration: 90*time.Minute + time.Second},
		"this worker's policy: log_bytes: 68719476737B is more than 64GiB":       {LogBytes: 64<<30 + 1},
		`this worker's policy: commands: "REQUESTS" is not among them`:           {Commands: []string{"GET", "REQUESTS"}},
		`this worker's policy: commands: "TARGETS" is not among them`:            {Commands: []string{"TARGETS"}},
		"this worker's policy: sessions: 2000 is more than 1000; connections: 8": {Sessions: 2000, Connections: 8000},
	} {
		require.ErrorContains(t, p.Check(n), want)
	}
	limited := parse(t, `targets = []
		rate = "1k/s"`)
	require.NoError(t, limited.Check(policy.Need{Commands: []string{"GET", "TARGETS"}}))
	for _, word := range []string{"REQUESTS", "EVALSHA", "FCALL_RO", "FLUSHDB", "DO", "CALL"} {
		require.ErrorContains(t, limited.Check(policy.Need{Commands: []string{"GET", word}}), "commands: the rate does not bound what "+word+" does")
		require.NoError(t, parse(t, `targets = []
			rate = "1k/s"
			commands = ["get", "`+word+`"]`).Check(policy.Need{Commands: []string{"GET", word}}))
	}
	require.NoError(t, parse(t, "targets = []").Check(policy.Need{Commands: []string{"EVAL"}}))
	require.NoError(t, parse(t, "targets = []").Check(policy.Need{Rate: 1e9, Sessions: 1e6}))
	require.NoError(t, (*policy.Policy)(nil).Check(policy.Need{Sessions: 1e6}))
}

func TestPolicyWatches(t *testing.T) {
	p := parse(t, whole)
	held := func(n int64) func(int64) int64 { return func(int64) int64 { return n } }
	require.NoError(t, p.Watch(90*time.Minute+2*time.Second, held(0)))
	require.ErrorContains(t, p.Watch(90*time.Minute+3*time.Second, held(0)), "duration: the load was not over after 1h30m0s")
	require.NoError(t, (*policy.Policy)(nil).Watch(time.Hour, held(1<<60)))
	require.NoError(t, parse(t, "targets = []").Watch(time.Hour, held(1<<60)))
	p = parse(t, "targets = []\nmemory = \"10MB\"")
	require.NoError(t, p.Watch(time.Hour, held(9_000_000)))
	require.EqualError(t, p.Watch(time.Hour, held(9_000_001)), "this worker's policy: memory: the process holds 9.00 MB, more than nine tenths of 10MB: the load has ended")
}

// Whatever is taken from a bucket, and given back, it is at most the rate times the time and a second; and a bucket that is asked often gives all of it.
func TestABucketGivesNoMoreThanItsRate(t *testing.T) {
	for _, rate := range []float64{0.5, 1, 7.3, 1000, 3e6} {
		b := (&policy.Policy{Rate: rate}).Budget().Requests
		random, taken := rand.New(rand.NewPCG(1, 2)), int64(0)
		for now := int64(0); now < 20e9; now += random.Int64N(30e6) {
			n := 1 + random.Int64N(6*b.Share())
			at, ok := b.Take(n, now)
			if !ok {
				require.Greater(t, at, now)
				continue
			}
			taken += n
			require.LessOrEqual(t, float64(taken), rate*(float64(now)/1e9+1))
			if back := random.Int64N(n + 1); random.IntN(3) == 0 {
				b.Return(back)
				taken -= back
			}
		}
		require.InDelta(t, 21*rate, taken, 0.05*21*rate+2)
	}
	require.Nil(t, parse(t, "targets = []").Budget())
	require.Nil(t, (*policy.Policy)(nil).Budget())
}
