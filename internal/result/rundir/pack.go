package rundir

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/safefile"
)

// A pack is a file that holds runs and experiments:
//
//	gzip(tar(manifest.json, ID/FILE, ID/FILE, …))
//
// The manifest names the files that follow it, in their order, with sizes and digests. Headers hold nothing about the machine, so the same version of
// Go makes the same bytes of the same runs.
const (
	manifestFile = "manifest.json"
	packFormat   = "loadgen runs"
	packVersion  = 1
)

// packed are the files of a directory that belong in a pack.
var packed = []string{planFile, logFile, probesFile, samplesFile, resultFile, experimentFile, settingsFile, tablesFile}

// manifest is the first file of a pack.
type manifest struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Files   []packedFile `json:"files"`
}

// packedFile is a file of a pack.
type packedFile struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// split returns the run's and the file's name.
func (f packedFile) split() (id, name string) {
	id, name, _ = strings.Cut(f.Path, "/")
	return id, name
}

// Pack writes runs and experiments, as returned by Packable, as a pack.
func Pack(w io.Writer, root string, ids []string) error {
	m := manifest{Format: packFormat, Version: packVersion}
	for _, id := range ids {
		for _, name := range packed {
			f, err := digestOf(root, id+"/"+name)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("pack %s: %w", id, err)
			}
			m.Files = append(m.Files, f)
		}
	}
	if err := writePack(w, root, &m); err != nil {
		return fmt.Errorf("pack %s: %w", strings.Join(ids, ", "), err)
	}
	return nil
}

// Packable returns what a pack of the given runs and experiments holds, sorted by name: experiments take their runs with them. Each must have
// finished, or be an experiment that no process is writing.
func Packable(root string, ids []string) ([]string, error) {
	var all []string
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return nil, err
		}
		x, err := LoadExperiment(root, id)
		if errors.Is(err, os.ErrNotExist) {
			all = append(all, id)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !x.Finished {
			taken, err := lock(filepath.Join(root, id))
			if err != nil {
				return nil, fmt.Errorf("experiment %s is going on: %w", id, err)
			}
			_ = taken.Close() // nothing was written
		}
		all = append(append(all, id), runsThere(root, x)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, id := range all {
		is, err := nameIn(root, id)
		if err != nil {
			return nil, err
		}
		if err := sameName(is, id); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
	return all, nil
}

// nameIn returns the name stored in the result of an experiment or a run.
func nameIn(root, id string) (string, error) {
	if x, err := LoadExperiment(root, id); err == nil {
		return x.ID, nil
	}
	r, err := Load(root, id)
	if err != nil {
		return "", err
	}
	return r.ID, nil
}

// digestOf returns the size and digest of a run's file.
func digestOf(root, path string) (packedFile, error) {
	in, err := safefile.Open(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return packedFile{}, err
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, in)
	return packedFile{Path: path, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

func writePack(w io.Writer, root string, m *manifest) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	if err := out.WriteHeader(header(manifestFile, int64(len(text)))); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := packFile(out, root, f); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}

func packFile(out *tar.Writer, root string, f packedFile) error {
	in, err := safefile.Open(filepath.Join(root, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := out.WriteHeader(header(f.Path, f.Bytes)); err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

// header is the header of a file, with its name and size and nothing else.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatUSTAR}
}
