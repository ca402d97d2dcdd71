package rundir

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/result/run"
)

const (
	incoming    = ".import-" // prefix of a directory that is being filled
	maxManifest = 8 << 20    // bytes
	maxPacked   = 30_000     // files
)

// Import reads a pack into root, completely or not at all. Each file must match the manifest, and each run and each snapshot must be complete. limit
// bounds the unpacked bytes. Runs that root already has, byte for byte, are skipped; a different run of the same name is an error. A crash leaves
// whole runs and a directory with a hidden name, which the next Import removes.
func Import(root string, pack io.Reader, limit int64, check Check) (added, there []string, err error) {
	return unpack(system{}, root, pack, limit, check)
}

// Check verifies the result of a run or an experiment below root, once all others of its pack are there. An error refuses the pack. Otherwise not
// says why the result could not be verified, and is kept with it, or is "" if it was verified.
type Check func(root, id string) (not string, err error)

func unpack(on disk, root string, pack io.Reader, limit int64, check Check) (added, there []string, err error) {
	if err := os.MkdirAll(root, dirMode); err != nil {
		return nil, nil, fmt.Errorf("make directory for runs: %w", err)
	}
	var temp string
	var taken *os.File
	err = alone(root, func() (err error) { // else a sweep could take the new directory for a crash's leftover
		if err = sweep(root); err != nil {
			return err
		}
		if temp, err = os.MkdirTemp(root, incoming); err != nil {
			return err
		}
		taken, err = lock(temp)
		return err
	})
	if err == nil {
		u := unpacking{disk: on, root: root, temp: temp, limit: limit, check: check}
		err = u.all(pack)
		added, there = u.added, u.there
		err = errors.Join(err, on.RemoveAll(temp), taken.Close())
	}
	if err != nil {
		return added, there, fmt.Errorf("import: %w", err)
	}
	return added, there, nil
}

// unpacking is an import in progress.
type unpacking struct {
	disk       disk
	root, temp string
	limit      int64
	check      Check
	files      manifest

	added, there []string
}

func (u *unpacking) all(pack io.Reader) error {
	if err := u.unfold(pack); err != nil {
		return err
	}
	var ids []string
	for _, f := range u.files.Files {
		if id, _ := f.split(); !slices.Contains(ids[max(0, len(ids)-1):], id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if err := u.verify(id); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	for _, id := range ids {
		if err := u.judge(id); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	var move []string
	for _, id := range ids {
		switch same, err := u.isThere(id); {
		case err != nil:
			return err
		case same:
			u.there = append(u.there, id)
		default:
			move = append(move, id)
		}
	}
	return u.move(move)
}

// unfold writes a pack's files below temp.
func (u *unpacking) unfold(pack io.Reader) error {
	buffered := bufio.NewReader(pack)
	zip, err := gzip.NewReader(buffered)
	if err != nil {
		return fmt.Errorf("it is not a pack of loadgen: %w", err)
	}
	zip.Multistream(false)
	in := tar.NewReader(zip)
	if err := u.readManifest(in); err != nil {
		return err
	}
	for _, f := range u.files.Files {
		if err := u.file(in, f); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if h, err := in.Next(); err == nil {
		return fmt.Errorf("%q: the manifest does not name it", h.Name)
	} else if err != io.EOF {
		return err
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(zip, 1)); err != nil {
		return err // gzip's checksum may be wrong, too
	} else if n > 0 {
		return errors.New("there is more after the last file")
	}
	if _, err := buffered.ReadByte(); err != io.EOF {
		return errors.New("there is more after the end")
	}
	return nil
}

// next returns the size of the next file, which must have the given name.
func next(in *tar.Reader, name string) (int64, error) {
	h, err := in.Next()
	switch {
	case err != nil:
		return 0, noEOF(err)
	case h.Name != name || h.Typeflag != tar.TypeReg || h.Format != tar.FormatUSTAR:
		return 0, fmt.Errorf("%q of type %q is where the file %s should be", h.Name, h.Typeflag, name)
	}
	return h.Size, nil
}

// noEOF replaces an end-of-file error with one that says the pack is cut off.
func noEOF(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the pack ends too early")
	}
	return err
}

func (u *unpacking) readManifest(in *tar.Reader) error {
	size, err := next(in, manifestFile)
	if err != nil {
		return fmt.Errorf("it is not a pack of loadgen: %w", err)
	}
	if size > maxManifest {
		return fmt.Errorf("a manifest of %d bytes, at most %d are read", size, maxManifest)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return noEOF(err)
	}
	if err := weigh(text, reflect.TypeOf(u.files), false); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&u.files); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if u.files.Format != packFormat || u.files.Version != packVersion {
		return fmt.Errorf("a pack of %q, version %d: this loadgen reads %q, version %d", u.files.Format, u.files.Version, packFormat, packVersion)
	}
	return u.checkManifest()
}

// checkManifest checks that every file is of a kind that runs have, is named once and is not too large, and that there is room for all.
func (u *unpacking) checkManifest() error {
	files := u.files.Files
	if len(files) == 0 || len(files) > maxPacked {
		return fmt.Errorf("%d files: a pack has 1 to %d", len(files), maxPacked)
	}
	total, seen := int64(0), map[string]bool{}
	for _, f := range files {
		id, name := f.split()
		if err := checkID(id); err != nil {
			return err
		}
		if !slices.Contains(packed, name) || seen[f.Path] {
			return fmt.Errorf("%q: no file of a run, or there twice", f.Path)
		}
		seen[f.Path] = true
		if f.Bytes < 0 || f.Bytes > math.MaxInt64-total {
			return fmt.Errorf("%s: a size of %d", f.Path, f.Bytes)
		}
		if most := mostOf(name); f.Bytes > most {
			return fmt.Errorf("%s: %d bytes, at most %d are read", f.Path, f.Bytes, most)
		}
		total += f.Bytes
	}
	if total > u.limit {
		return fmt.Errorf("it unfolds to %d MiB, more than the %d MiB that are allowed", total>>20, u.limit>>20)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(u.temp, &st); err != nil {
		return err
	}
	if free := int64(st.Bavail) * st.Bsize; total > free-minFree {
		return fmt.Errorf("it unfolds to %d MiB, and %d MiB are free in %s", total>>20, free>>20, u.root)
	}
	return nil
}

// mostOf returns the size limit of a file of that name. Files that are read piece by piece have no limit of their own.
func mostOf(name string) int64 {
	switch name {
	case planFile, settingsFile, tablesFile:
		return maxPlan
	case resultFile, experimentFile:
		return maxText
	}
	return math.MaxInt64
}

// file writes and syncs a file.
func (u *unpacking) file(in *tar.Reader, f packedFile) error {
	size, err := next(in, f.Path)
	if err != nil {
		return err
	}
	if size != f.Bytes {
		return fmt.Errorf("%d bytes, the manifest says %d", size, f.Bytes)
	}
	id, name := f.split()
	if err := os.MkdirAll(filepath.Join(u.temp, id), dirMode); err != nil {
		return err
	}
	out, err := u.disk.OpenFile(filepath.Join(u.temp, id, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return noEOF(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("its digest is %s, the manifest says %q", got, f.SHA256)
	}
	return nil
}

// verify checks that a directory is that of a finished run or of an experiment.
func (u *unpacking) verify(id string) error {
	if err := u.plainTexts(id); err != nil {
		return err
	}
	if u.has(id, experimentFile) == u.has(id, planFile, logFile, probesFile, resultFile) {
		return errors.New("a run and an experiment at once, or neither")
	}
	if u.has(id, experimentFile) {
		x, err := LoadExperiment(u.temp, id)
		if err != nil {
			return err
		}
		return sameName(x.ID, id)
	}
	if u.has(id, settingsFile, tablesFile) {
		return errors.New("the settings of an experiment, in a run")
	}
	r, err := Load(u.temp, id)
	if err != nil {
		return err
	}
	if err := sameName(r.ID, id); err != nil {
		return err
	}
	plan, err := Plan(u.temp, id)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(plan); hex.EncodeToString(sum[:]) != r.PlanDigest {
		return errors.New("its plan is not the one that its result is of")
	}
	return errors.Join(
		Snapshots(u.temp, id, func(_, _ []byte) error { return nil }),
		Probes(u.temp, id, func(run.Probe) error { return nil }),
	)
}

// judge has a result verified, and keeps why it could not be, and that it was imported.
func (u *unpacking) judge(id string) error {
	not, err := u.check(u.temp, id)
	if err == nil {
		err = writeFile(u.disk, filepath.Join(u.temp, id, importedFile), nil)
	}
	if err != nil || not == "" {
		return err
	}
	return writeFile(u.disk, filepath.Join(u.temp, id, unverifiedFile), []byte(not))
}

// sameName refuses a directory whose name is not the one in its result.
func sameName(is, name string) error {
	if is == name {
		return nil
	}
	return fmt.Errorf("its result is that of %q: rename the directory to that", is)
}

// plainTexts refuses texts with characters that a terminal or a page would obey; loadgen never writes any.
func (u *unpacking) plainTexts(id string) error {
	for _, name := range []string{planFile, resultFile, experimentFile, settingsFile, tablesFile} {
		if !u.has(id, name) {
			continue
		}
		text, err := safefile.Read(filepath.Join(u.temp, id, name), mostOf(name))
		if err != nil {
			return err
		}
		if err := weigh(text, nil, true); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// isThere says whether root already has the same run.
func (u *unpacking) isThere(id string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(u.root, id)); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	for _, name := range packed {
		old, oldErr := digestOf(u.root, id+"/"+name)
		fresh, err := digestOf(u.temp, id+"/"+name)
		if old != fresh || (oldErr == nil) != (err == nil) {
			return false, fmt.Errorf("%s is there already, and is another: delete or rename that one first", id)
		}
	}
	return true, nil
}

// move moves the unpacked directories into root, experiments last, once their runs are there.
func (u *unpacking) move(ids []string) error {
	slices.SortStableFunc(ids, func(a, b string) int { return u.rank(a) - u.rank(b) })
	for _, id := range ids {
		if err := u.disk.SyncDir(filepath.Join(u.temp, id)); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := u.disk.Rename(filepath.Join(u.temp, id), filepath.Join(u.root, id)); err != nil {
			return err
		}
		u.added = append(u.added, id)
	}
	return u.disk.SyncDir(u.root)
}

func (u *unpacking) rank(id string) int {
	if u.has(id, experimentFile) {
		return 1
	}
	return 0
}

// has says whether the pack has one of these files of a run.
func (u *unpacking) has(id string, names ...string) bool {
	return slices.ContainsFunc(u.files.Files, func(f packedFile) bool {
		of, name := f.split()
		return of == id && slices.Contains(names, name)
	})
}
