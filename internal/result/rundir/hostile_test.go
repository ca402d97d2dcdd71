//go:build !race

package rundir

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostileRoot is the directory of a child process that imports the pack beside it, and reads the result.
const hostileRoot = "LOADGEN_TEST_HOSTILE_ROOT"

// peak is a process's peak memory. The kernel's rusage may be its parent's, if that was larger.
var peak = regexp.MustCompile(`VmHWM:\s*([0-9]+) kB`)

// TestMain makes the test binary a child process that imports a pack when told to: its peak memory is known once it has ended.
func TestMain(m *testing.M) {
	root := os.Getenv(hostileRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	in, err := os.Open(filepath.Join(root, "pack"))
	if err == nil {
		_, _, err = Import(root, in, 4<<30, trusting)
	}
	if err != nil {
		_, _ = io.WriteString(os.Stdout, err.Error())
	}
	if _, err := List(root); err != nil {
		panic(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	os.Stderr.Write(peak.Find(status))
	os.Exit(0)
}

// repeated is a text that is written without being held.
type repeated struct {
	before, piece, after string
	times                int
}

func (r repeated) size() int64 {
	return int64(len(r.before) + len(r.piece)*r.times + len(r.after))
}

func (r repeated) write(t *testing.T, w io.Writer) {
	t.Helper()
	_, err := io.WriteString(w, r.before)
	require.NoError(t, err)
	const atOnce = 1 << 12
	block := strings.Repeat(r.piece, min(atOnce, r.times))
	for left := r.times; left > 0; left -= atOnce {
		_, err := io.WriteString(w, block[:len(r.piece)*min(left, atOnce)])
		require.NoError(t, err)
	}
	_, err = io.WriteString(w, r.after)
	require.NoError(t, err)
}

// bomb writes a pack of a run in which one file is another's.
func bomb(t *testing.T, path, name string, text repeated) {
	t.Helper()
	m := manifest{Format: packFormat, Version: packVersion}
	files := map[string]repeated{name: text}
	for _, f := range parts(t) {
		_, of, _ := strings.Cut(f.name, "/")
		if of != name {
			files[of] = repeated{before: f.text}
		}
	}
	for _, of := range packed {
		if text, ok := files[of]; ok {
			sum := sha256.New()
			text.write(t, sum)
			m.Files = append(m.Files, packedFile{id + "/" + of, text.size(), hex.EncodeToString(sum.Sum(nil))})
		}
	}
	b, err := json.Marshal(m)
	require.NoError(t, err)
	if name == manifestFile {
		files[manifestFile], m.Files = text, nil
	} else {
		files[manifestFile] = repeated{before: string(b)}
	}
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	require.NoError(t, err)
	in := tar.NewWriter(zip)
	for _, f := range append([]packedFile{{Path: manifestFile}}, m.Files...) {
		of := f.Path[strings.LastIndex(f.Path, "/")+1:]
		require.NoError(t, in.WriteHeader(header(f.Path, files[of].size())))
		files[of].write(t, in)
	}
	require.NoError(t, in.Close())
	require.NoError(t, zip.Close())
}

// A pack of a megabyte costs less than 200 MB of memory, whatever is in it, and leaves nothing behind. What it unpacks to comes close to the limits
// of each file.
func TestSmallPacksCostLittleMemory(t *testing.T) {
	const mib = 1 << 20
	const deeper = "exceeded max depth"
	wide := func(before, piece, after string) repeated {
		return repeated{before, piece, after, (maxText - 1024) / len(piece)}
	}
	for name, test := range map[string]struct {
		want, file string
		text       repeated
	}{
		"nested":         {deeper, resultFile, wide("", "[", "")},
		"nested objects": {deeper, resultFile, wide("", `{"a":`, "")},
		"nested maps":    {deeper, resultFile, wide(`{"phase":`, `{"phase":`, "")},
		"nested deep":    {errDeep.Error(), resultFile, repeated{`{"nothing":`, "[", strings.Repeat("]", 9000) + "}", 9000}},
		"wide rows":      {errMuch.Error(), resultFile, wide(`{"phase":{"a":{"series":[`, "{},", "{}]}}}")},
		"wide fleet":     {errMuch.Error(), resultFile, wide(`{"fleet":[`, "{},", "{}]}")},
		"folded names":   {errMuch.Error(), resultFile, wide(`{"FLEET":[`, "{},", "{}]}")},
		"kelvin names":   {errMuch.Error(), resultFile, wide("{\"wor\u212aer\u017f\":[", `"",`, `""]}`)},
		"escaped names":  {errMuch.Error(), resultFile, wide(`{"\u0066leet":[`, "{},", "{}]}")},
		"wide phases":    {errMuch.Error(), resultFile, wide(`{"phase":{`, `"a":{},`, `"a":{}}}`)},
		"wide asserts":   {errMuch.Error(), resultFile, wide(`{"asserts":[`, "{},", "{}]}")},
		"wide, null":     {errMuch.Error(), resultFile, wide(`{"asserts":[`, "null,", "null]}")},
		"labels":         {errMuch.Error(), resultFile, wide(`{"labels":{`, `"":"",`, `"":""}}`)},
		"unknown, wide":  {"schema 0", resultFile, wide(`{"nothing":[`, "{},", "{}]}")},
		"long text":      {errLong.Error(), resultFile, wide(`{"plan":"`, "x", `"}`)},
		"texts of all":   {"schema 0", resultFile, wide(`{"workers":[`, `"`+strings.Repeat("x", 1000)+`",`, `""]}`)},
		"space":          {"unexpected end of JSON", resultFile, wide("", " ", "")},
		"numbers":        {errLong.Error(), resultFile, wide(`{"seconds":1`, "0", "}")},
		"plan":           {"its plan is not the one", planFile, repeated{"[", "{},", "{}]", 16*mib/3 - 2}},
		"nested plan":    {deeper, planFile, repeated{"", "[", "", 16 * mib}},

		"probe":            {"line 1 has more than 1048576 bytes", probesFile, repeated{"", "x", "\n", 200 * mib}},
		"log":              {"no whole record", logFile, repeated{magic, "\x00", "", 100 * mib}},
		"log's record":     {"the checksum is wrong", logFile, repeated{magic + "\x00\x00\x00\x01", "\x00", "", 100 * mib}},
		"manifest, wide":   {errMuch.Error(), manifestFile, repeated{`{"files":[`, "{},", "{}]}", 2_700_000}},
		"manifest, nested": {deeper, manifestFile, repeated{`{"files":`, "[", "", 8_000_000}},
		"manifest, long":   {errLong.Error(), manifestFile, repeated{`{"format":"`, "x", `"}`, 8_000_000}},
		"manifest, huge":   {"at most 8388608 are read", manifestFile, repeated{"", " ", "", 100 * mib}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "pack")
			bomb(t, path, test.file, test.text)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(1e6))
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), hostileRoot+"="+root)
			var took bytes.Buffer
			child.Stderr = &took
			said, err := child.Output()
			require.NoError(t, err, took.String())
			require.Contains(t, string(said[:min(len(said), 1000)]), test.want)
			found := peak.FindStringSubmatch(took.String())
			require.Len(t, found, 2, took.String())
			most, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			t.Logf("a pack of %d bytes took %d MiB", info.Size(), most>>10)
			require.Less(t, most, 200_000_000>>10, "KiB")
			left, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Len(t, left, 1, "the pack itself")
		})
	}
}
