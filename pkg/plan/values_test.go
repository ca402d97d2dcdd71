package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// withValues is a plan of one dataset with the given arguments, on one endpoint, or on two with copies on both.
func withValues(keys, values string, copies bool) string {
	replication := ""
	if copies {
		replication = "replication {\n n = 2\n w = 1\n r = 1\n}"
	}
	return `plan "p" {}
target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001", "127.0.0.1:7002"]
  ` + replication + `
}
dataset "d" {
  keys {
    count = 1000
    ` + keys + `
  }
  values {
    ` + values + `
  }
}
phase "p" {
  target  = target.t
  dataset = dataset.d
  ops = {
    get = 1
    put = 1
  }
  closed { iterations = 1 }
}`
}

// All forms of keys and values resolve to this, and survive the canonical form.
func TestKeysAndValues(t *testing.T) {
	record := map[string]string{"id": "uuid", "n": "int(1, 99)"}
	share := 0.25
	list := []plan.SizeWeight{{Size: 32, Weight: 9}, {Size: 1024, Weight: 1}}
	for _, tt := range []struct {
		keys, values string
		copies       bool
		wantKeys     plan.Keys
		want         plan.Values
		form         string
	}{
		{`pick = "hotspot(80% on 20%)"`, `size = 10`, false, plan.Keys{Pick: "hotspot", HotOps: 0.8, HotKeys: 0.2}, plan.Values{Size: 10}, ""},
		{`pick = "zipf(0.99, ycsb)"`, `size = 10`, false, plan.Keys{Pick: "zipf", Skew: 0.99, Form: "ycsb"}, plan.Values{Size: 10}, ""},
		{`pick = "latest"`, `size = 10`, false, plan.Keys{Pick: "latest", Skew: 0.99}, plan.Values{Size: 10}, ""},
		{`pick = "latest(0.5)"`, `size = 10`, false, plan.Keys{Pick: "latest", Skew: 0.5}, plan.Values{Size: 10}, ""},
		{"", `size = "uniform(100, 1KiB)"`, false, plan.Keys{Pick: "uniform"}, plan.Values{Size: 1024, Sizes: &plan.Sizes{Kind: "uniform", Least: 100}}, "uniform(100B, 1KiB)"},
		{"", `size = "lognormal(100B, 0.8, 1KiB)"`, true, plan.Keys{Pick: "uniform"}, plan.Values{Size: 1024, Checked: true, Sizes: &plan.Sizes{Kind: "lognormal", Median: 100, Sigma: 0.8}}, "lognormal(100B, 0.8, 1KiB)"},
		{"", "size = {\n 1024 = 1\n 32 = 9\n }", false, plan.Keys{Pick: "uniform"}, plan.Values{Size: 1024, Sizes: &plan.Sizes{Kind: "list", List: list}}, "one of 2 sizes"},
		{"", "size = {\n \"32B\" = 9\n \"1KiB\" = 1\n }\n compressibility = \"25%\"", false, plan.Keys{Pick: "uniform"}, plan.Values{Size: 1024, Sizes: &plan.Sizes{Kind: "list", List: list}, Compressibility: &share}, "one of 2 sizes, 25% of which compresses away"},
		{"", "record = {\n id = \"uuid\"\n n = \"int(1, 99)\"\n }", false, plan.Keys{Pick: "uniform"}, plan.Values{Size: len(`{"id":"00000000-0000-0000-0000-000000000000","n":99}`), Record: record}, "records of 2 fields as JSON"},
		{"", "record = {\n id = \"uuid\"\n n = \"int(1, 99)\"\n }\n encoding = \"json\"\n compression = \"none\"", false, plan.Keys{Pick: "uniform"}, plan.Values{Size: len(`{"id":"00000000-0000-0000-0000-000000000000","n":99}`), Record: record}, "records of 2 fields as JSON"},
		{"", "record = {\n id = \"uuid\"\n n = \"int(1, 99)\"\n }\n encoding = \"packed\"", false, plan.Keys{Pick: "uniform"}, plan.Values{Size: 16 + 4, Record: record, Encoding: "packed"}, "records of 2 fields, packed"},
		{"", "record = {\n id = \"uuid\"\n n = \"int(1, 99)\"\n }\n encoding = \"dictionary\"\n compression = \"zstd\"", false, plan.Keys{Pick: "uniform"}, plan.Values{Size: 16 + 4 + 64, Record: record, Encoding: "dictionary", Compression: "zstd"}, "records of 2 fields, packed by dictionary, compressed by zstd"},
		{"", "record = {\n id = \"uuid\"\n n = \"int(1, 99)\"\n }", true, plan.Keys{Pick: "uniform"}, plan.Values{Size: driver.HeaderSize + len(`{"id":"00000000-0000-0000-0000-000000000000","n":99}`), Checked: true, Record: record}, "records of 2 fields as JSON"},
	} {
		p := good(t, withValues(tt.keys, tt.values, tt.copies), plan.Vars{})
		tt.wantKeys.Count, tt.wantKeys.Scope, tt.wantKeys.Format = 1000, "shared", "key:%012d"
		tt.want.Fill = "text"
		require.Equal(t, tt.wantKeys, p.Datasets[0].Keys)
		require.Equal(t, tt.want, p.Datasets[0].Values)
		require.Equal(t, tt.form, p.Datasets[0].Values.Form())
		b, err := p.Canonical()
		require.NoError(t, err)
		again, err := plan.Decode(b, drivers())
		require.NoError(t, err)
		require.Equal(t, p, again)
		_, err = p.Datasets[0].Values.Value()
		require.NoError(t, err)
	}
}

// A worker's memory is computed from the largest value.
func TestMemoryGoesByTheLargestValue(t *testing.T) {
	memory := func(values string) int64 {
		_, all := good(t, withValues("", values, false), plan.Vars{}).Predict()
		return all.Memory
	}
	require.Equal(t, memory(`size = "1MiB"`)+driver.LongText, memory(`size = "uniform(1B, 1MiB)"`), "small ones are cut from the long text")
	require.Equal(t, memory(`size = "1MiB"`)+driver.LongText, memory("size = {\n 10 = 1000\n \"1MiB\" = 1\n}"))
	require.Greater(t, memory("record = {\n a = \"lorem(75000)\"\n}"), memory(`size = "1MiB"`))
}

// A canonical form with a wrong record size or a second kind of values is not a plan.
func TestDecodeRefusesOtherRecords(t *testing.T) {
	p := good(t, withValues("", "record = {\n n = \"int(1, 99)\"\n }", false), plan.Vars{})
	b, err := p.Canonical()
	require.NoError(t, err)
	for from, to := range map[string]string{
		`"size_bytes":8`: `"size_bytes":9`, `"int(1, 99)"`: `"number"`,
		`"record":{"n":"int(1, 99)"}`: `"compressibility":0.5,"record":{"n":"int(1, 99)"}`,
		`"pick":"uniform"`:            `"pick":"latest"`, `"fill":"text"`: `"fill":"text","sizes":{"kind":"list"}`,
	} {
		changed := strings.Replace(string(b), from, to, 1)
		require.NotEqual(t, string(b), changed)
		_, err := plan.Decode([]byte(changed), drivers())
		require.Error(t, err, changed)
	}
}
