package rundir

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/run"
)

const plenty = 64 << 20

// finished makes a run that has finished.
func finished(t testing.TB, root, name, of string) {
	t.Helper()
	plan := []byte(`{"name":"hydra-m4"}`)
	sum := sha256.Sum256(plan)
	d, err := Create(root, name, plan)
	require.NoError(t, err)
	require.NoError(t, d.Append("w1", []byte("snapshot of "+name)))
	require.NoError(t, d.Observe([]byte(`{"phase":"get"}`)))
	r := run.New(run.Header{ID: name, Plan: "hydra-m4", PlanDigest: hex.EncodeToString(sum[:]), StartedAt: start, Experiment: of, Variant: "a"}, machine.Environment{})
	require.NoError(t, d.Finish(r))
}

// study makes an experiment of two runs, and a run of none.
func study(t testing.TB) (root string, x *run.Experiment) {
	t.Helper()
	root = t.TempDir()
	x = experiment()
	d, err := CreateExperiment(root, x)
	require.NoError(t, err)
	require.NoError(t, d.KeepSettings([]byte(`{}`)))
	for _, name := range []string{"r1", "r2"} {
		finished(t, root, name, x.ID)
		x.Runs = append(x.Runs, run.ExperimentRun{ID: name, Variant: "a"})
	}
	x.Runs = append(x.Runs, run.ExperimentRun{ID: "never-made", Variant: "a"})
	x.Finished = true
	require.NoError(t, d.Save(x))
	require.NoError(t, d.Close())
	finished(t, root, id, "")
	return root, x
}

func pack(t testing.TB, root string, ids ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	all, err := Packable(root, ids)
	require.NoError(t, err)
	require.NoError(t, Pack(&b, root, all))
	return b.Bytes()
}

// tree reads all files below a directory, by path, without the marks of imports; a hidden name is one, too.
func treeOf(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root || d.Name() == importedFile {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = os.ReadFile(path)
			all[name] = string(b)
		} else {
			all[name] = "directory"
		}
		return err
	}))
	return all
}

func TestPackAndImport(t *testing.T) {
	root, x := study(t)
	packed := pack(t, root, x.ID, id)
	require.Equal(t, packed, pack(t, root, id, "r1", x.ID), "the order and what is named twice make no difference")

	other := filepath.Join(t.TempDir(), "runs")
	added, there, err := Import(other, bytes.NewReader(packed), plenty, trusting)
	require.NoError(t, err)
	require.Equal(t, []string{id, "r1", "r2", x.ID}, added, "experiments last")
	require.Empty(t, there)
	require.Equal(t, treeOf(t, root), treeOf(t, other))
	require.True(t, Imported(other, x.ID) && Imported(other, "r1") && !Imported(root, "r1"))
	require.Equal(t, packed, pack(t, other, id, x.ID))

	added, there, err = Import(other, bytes.NewReader(packed), plenty, trusting)
	require.NoError(t, err)
	require.Empty(t, added)
	require.Len(t, there, 4)

	// The next import finishes what a crash has interrupted, and removes its leftovers.
	require.NoError(t, os.RemoveAll(filepath.Join(other, "r2")))
	require.NoError(t, os.MkdirAll(filepath.Join(other, incoming+"123", "r2"), 0o755))
	added, _, err = Import(other, bytes.NewReader(packed), plenty, trusting)
	require.NoError(t, err)
	require.Equal(t, []string{"r2"}, added)
	require.Equal(t, treeOf(t, root), treeOf(t, other))

	// Another run of the same name stays.
	require.NoError(t, os.WriteFile(filepath.Join(other, "r1", planFile), []byte(`{}`), 0o644))
	before := treeOf(t, other)
	_, _, err = Import(other, bytes.NewReader(packed), plenty, trusting)
	require.EqualError(t, err, "import: r1 is there already, and is another: delete or rename that one first")
	require.Equal(t, before, treeOf(t, other))
}

// TestImportsAtTheSameTime must not mistake each other for a crash's leftovers.
func TestImportsAtTheSameTime(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("r%d", i)
		finished(t, from, name, "")
		packed := pack(t, from, name)
		all.Go(func() {
			for range 20 {
				if _, _, err := Import(to, bytes.NewReader(packed), plenty, trusting); err != nil {
					t.Errorf("import beside others: %v", err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, treeOf(t, from), treeOf(t, to))
}

func TestPackRefuses(t *testing.T) {
	root, x := study(t)
	abandon(t, create(t, filepath.Join(root, "others")))
	for ids, want := range map[string]string{
		"none": "no run none in ", "../r1": "a name has", "": "a name has",
	} {
		_, err := Packable(root, []string{ids})
		require.ErrorContains(t, err, want)
	}
	_, err := Packable(filepath.Join(root, "others"), []string{id})
	require.EqualError(t, err, "run "+id+" is unfinished: it has no result.json")

	x.ID, x.Finished = "going-on", false
	going, err := CreateExperiment(root, x)
	require.NoError(t, err)
	_, err = Packable(root, []string{x.ID})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, going.Close())
	_, err = Packable(root, []string{x.ID})
	require.NoError(t, err, "it was cut off")
}

// member is a file of a pack that somebody else has made.
type member struct {
	name, text string
	kind       byte
}

// forged makes a pack of any kind. The manifest is made of the members unless one is given.
func forged(t testing.TB, text string, members ...member) []byte {
	t.Helper()
	if text == "" {
		m := manifest{Format: packFormat, Version: packVersion}
		for _, f := range members {
			sum := sha256.Sum256([]byte(f.text))
			m.Files = append(m.Files, packedFile{f.name, int64(len(f.text)), hex.EncodeToString(sum[:])})
		}
		b, err := json.Marshal(m)
		require.NoError(t, err)
		text = string(b)
	}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, f := range append([]member{{name: manifestFile, text: text}}, members...) {
		h := header(f.name, int64(len(f.text)))
		if f.kind != 0 {
			h.Typeflag, h.Size, h.Linkname, f.text = f.kind, 0, "/etc/passwd", ""
		}
		require.NoError(t, out.WriteHeader(h))
		_, err := out.Write([]byte(f.text))
		require.NoError(t, err)
	}
	require.NoError(t, out.Close())
	require.NoError(t, zip.Close())
	return b.Bytes()
}

// parts are the members of a pack of one run.
func parts(t testing.TB) []member {
	t.Helper()
	root := t.TempDir()
	finished(t, root, id, "")
	var all []member
	for _, name := range []string{planFile, logFile, resultFile, probesFile} {
		b, err := os.ReadFile(filepath.Join(root, id, name))
		require.NoError(t, err)
		all = append(all, member{name: id + "/" + name, text: string(b)})
	}
	return all
}

// with replaces a member.
func with(members []member, i int, m member) []member {
	all := append([]member{}, members...)
	all[i] = m
	return all
}

// Nothing hostile escapes from the directory it is unpacked in, or stays there.
func TestHostilePacks(t *testing.T) {
	good := parts(t)
	plan, log, result, probes := good[0], good[1], good[2], good[3]
	whole := forged(t, "", good...)
	declared := func(path string, size int64) string {
		return fmt.Sprintf(`{"format":"loadgen runs","version":1,"files":[{"path":%q,"bytes":%d,"sha256":""}]}`, path, size)
	}
	for name, test := range map[string]struct {
		want string
		pack []byte
	}{
		"nothing":        {"not a pack of loadgen: EOF", nil},
		"something":      {"not a pack of loadgen: gzip: invalid header", []byte("PK\x03\x04 is another's")},
		"cut":            {"ends too early", whole[:len(whole)/2]},
		"cut at end":     {"unexpected EOF", whole[:len(whole)-4]},
		"turned":         {"gzip: invalid checksum", append(append([]byte{}, whole[:len(whole)-8]...), "\x00\x00\x00\x00\x00\x00\x00\x00"...)},
		"appended":       {"more after the end", append(append([]byte{}, whole...), whole...)},
		"traversal":      {`a name has 1 to`, forged(t, "", member{name: "a b/../../plan.json", text: "{}"})},
		"up":             {`does not begin with a dot`, forged(t, "", member{name: "../plan.json", text: "{}"})},
		"absolute":       {`a name has 1 to`, forged(t, "", member{name: "/etc/plan.json", text: "{}"})},
		"deep":           {`no file of a run`, forged(t, "", member{name: id + "/x/plan.json", text: "{}"})},
		"other file":     {`no file of a run`, forged(t, "", member{name: id + "/.bashrc", text: "{}"})},
		"twice":          {`there twice`, forged(t, "", plan, plan)},
		"symlink":        {`of type '2' is where the file`, forged(t, "", with(good, 1, member{name: log.name, kind: tar.TypeSymlink})...)},
		"hard link":      {`of type '1' is where the file`, forged(t, "", with(good, 1, member{name: log.name, kind: tar.TypeLink})...)},
		"device":         {`of type '3' is where the file`, forged(t, "", with(good, 1, member{name: log.name, kind: tar.TypeChar})...)},
		"directory":      {`of type '5' is where the file`, forged(t, "", with(good, 1, member{name: log.name, kind: tar.TypeDir})...)},
		"unnamed":        {`the manifest does not name it`, forged(t, declaredOf(t, good), append(good, member{name: "x/plan.json", text: "{}"})...)},
		"missing":        {`ends too early`, forged(t, declaredOf(t, good), good[:3]...)},
		"other order":    {`is where the file`, forged(t, declaredOf(t, good), log, plan, result)},
		"too large":      {`it unfolds to 100 MiB, more than the 64 MiB that are allowed`, forged(t, declared(id+"/snapshots.log", 100<<20))},
		"overflow":       {`a size of`, forged(t, strings.Replace(declared(id+"/snapshots.log", math.MaxInt64), "]}", `,{"path":"x/snapshots.log","bytes":9223372036854775807,"sha256":""}]}`, 1))},
		"long plan":      {`plan.json: 104857600 bytes, at most 16777216 are read`, forged(t, declared(id+"/plan.json", 100<<20))},
		"long result":    {`result.json: 104857600 bytes, at most 33554432 are read`, forged(t, declared(id+"/result.json", 100<<20))},
		"other id":       {`its result is that of "x": rename the directory to that`, forged(t, "", with(good, 2, member{name: result.name, text: strings.Replace(result.text, id, "x", 1)})...)},
		"negative":       {`a size of -1`, forged(t, declared(id+"/plan.json", -1))},
		"more bytes":     {`the manifest says 5`, forged(t, declared(id+"/plan.json", 5), member{name: id + "/plan.json", text: strings.Repeat("x", 5000)})},
		"other bytes":    {`its digest is `, forged(t, declaredOf(t, good), with(good, 1, member{name: log.name, text: strings.Repeat("x", len(log.text))})...)},
		"empty":          {`0 files: a pack has 1 to`, forged(t, `{"format":"loadgen runs","version":1,"files":[]}`)},
		"later":          {`version 2: this loadgen reads`, forged(t, `{"format":"loadgen runs","version":2,"files":[]}`)},
		"unknown field":  {`unknown field "also"`, forged(t, `{"also":1}`)},
		"no manifest":    {`not a pack of loadgen: "a"`, headless(t)},
		"other plan":     {`its plan is not the one`, forged(t, "", with(good, 0, member{name: plan.name, text: "{}"})...)},
		"spoiled log":    {`no whole record`, forged(t, "", with(good, 1, member{name: log.name, text: log.text[:len(log.text)-1]})...)},
		"spoiled probes": {`line 1: `, forged(t, "", with(good, 3, member{name: probes.name, text: "{\n"})...)},
		"no result":      {`is unfinished`, forged(t, "", plan, log)},
		"no log":         {`no such file`, forged(t, "", plan, result)},
		"bad result":     {`schema 0`, forged(t, "", with(good, 2, member{name: result.name, text: "{}"})...)},
		"two in one":     {`a run and an experiment at once`, forged(t, "", append(good, member{name: id + "/" + experimentFile, text: `{"schema":2,"baseline":"a","variants":[{"name":"a"}]}`})...)},
		"escape codes":   {`some that turn the direction of writing: "\x1b]0;`, forged(t, "", with(good, 2, member{name: result.name, text: strings.Replace(result.text, `"hydra-m4"`, `"\u001b]0;owned\u0007"`, 1)})...)},
		"turned writing": {`some that turn the direction of writing: "hydra\u202e-m4"`, forged(t, "", with(good, 2, member{name: result.name, text: strings.Replace(result.text, `"hydra-m4"`, `"hydra\u202e-m4"`, 1)})...)},
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			root := filepath.Join(outer, "a", "runs")
			added, _, err := Import(root, bytes.NewReader(test.pack), plenty, trusting)
			require.ErrorContains(t, err, test.want)
			require.Empty(t, added)
			require.Equal(t, map[string]string{"a": "directory", "a/runs": "directory"}, treeOf(t, outer))
		})
	}
}

// unzipped is what a pack holds.
func unzipped(t *testing.T, pack []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(pack))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return text
}

// A pack that ends or is spoiled anywhere leaves nothing.
func TestPacksCutAndTurnedAnywhere(t *testing.T) {
	whole := forged(t, "", parts(t)...)
	for at := 0; at < len(whole); at += 61 {
		turned := bytes.Clone(whole)
		turned[at] ^= 0x10
		for name, pack := range map[string][]byte{"cut": whole[:at], "turned": turned} {
			root := t.TempDir()
			_, _, err := Import(root, bytes.NewReader(pack), plenty, trusting)
			if name == "turned" && err == nil {
				require.Equal(t, unzipped(t, whole), unzipped(t, pack), "at %d: gzip has several ways to say the same", at)
				continue
			}
			require.Error(t, err, "%s at %d", name, at)
			require.Empty(t, treeOf(t, root), "%s at %d", name, at)
		}
	}
}

// declaredOf is the manifest of members.
func declaredOf(t testing.TB, members []member) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(forged(t, "", members...)))
	require.NoError(t, err)
	in := tar.NewReader(zip)
	_, err = in.Next()
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = b.ReadFrom(in)
	require.NoError(t, err)
	return b.String()
}

// headless is a pack without a manifest.
func headless(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	require.NoError(t, out.WriteHeader(header("a", 0)))
	require.NoError(t, out.Close())
	require.NoError(t, zip.Close())
	return b.Bytes()
}

// After any import, the directory holds nothing, or something that Pack can pack again.
func FuzzImport(f *testing.F) {
	good := parts(f)
	f.Add([]byte(declaredOf(f, good)), []byte(good[0].text), []byte(good[1].text), []byte(good[2].text))
	f.Add([]byte(`{"format":"loadgen runs","version":1,"files":[{"path":"a/plan.json","bytes":2,"sha256":""}]}`), []byte("{}"), []byte(""), []byte("{}"))
	f.Fuzz(func(t *testing.T, text, plan, log, result []byte) {
		if len(text) == 0 {
			return
		}
		root := t.TempDir()
		members := []member{{name: good[0].name, text: string(plan)}, {name: good[1].name, text: string(log)}, {name: good[2].name, text: string(result)}}
		added, _, err := Import(root, bytes.NewReader(forged(t, string(text), members...)), 1<<20, trusting)
		if err != nil {
			require.Empty(t, treeOf(t, root))
			return
		}
		_, err = Packable(root, added)
		require.NoError(t, err)
		require.NoError(t, Pack(&bytes.Buffer{}, root, added))
	})
}

// FuzzImportBytes takes packs of any bytes.
func FuzzImportBytes(f *testing.F) {
	f.Add(forged(f, "", parts(f)...))
	f.Fuzz(func(t *testing.T, pack []byte) {
		root := t.TempDir()
		if _, _, err := Import(root, bytes.NewReader(pack), 1<<20, trusting); err != nil {
			require.Empty(t, treeOf(t, root))
		}
	})
}

// trusting verifies nothing.
func trusting(string, string) (string, error) { return "", nil }
