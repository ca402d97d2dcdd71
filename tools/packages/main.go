// Command packages makes what is installed of a release: for each platform an archive, and packages for Debian, Red Hat and Alpine Linux.
//
//	go run -C tools/packages . DIST
//
// DIST has the binaries, loadgen-linux-ARCH; packages are written beside them. Version and time are those that the binary was built from, and nothing
// else of this machine goes in: the same binaries make the same bytes. It is a module of its own so that loadgen depends neither on nfpm nor on the
// writer of man pages.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // registers the format
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/loadgen/loadgen/internal/command"
	"github.com/loadgen/loadgen/internal/fleet/deploy"
)

// file is a file of an archive and of packages.
type file struct {
	inArchive string
	installed string // path on a system
	mode      fs.FileMode
	content   []byte
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packages DIST")
		os.Exit(2)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := write(os.Args[1], arch); err != nil {
			fmt.Fprintf(os.Stderr, "packages: %s: %v\n", arch, err)
			os.Exit(1)
		}
	}
}

// write writes the archive and the packages of a platform.
func write(dist, arch string) error {
	binary := filepath.Join(dist, "loadgen-linux-"+arch)
	version, at, err := built(binary)
	if err != nil {
		return err
	}
	all, err := contents(binary, version, at)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("loadgen_%s_linux_%s", version, arch)
	if err := create(filepath.Join(dist, name+".tar.gz"), func(w io.Writer) error { return archive(w, name, all, at) }); err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "packages")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	for _, format := range []string{"deb", "rpm", "apk"} {
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info, err := packageOf(stage, format, version, arch, at, all)
		if err != nil {
			return err
		}
		if err := create(filepath.Join(dist, name+"."+format), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// built returns the version of a binary without its v, and the time of its commit.
func built(binary string) (version string, at time.Time, err error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", at, err
	}
	version, at = "0.0.0", time.Unix(0, 0).UTC()
	if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok {
		version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			if at, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return "", at, err
			}
		}
	}
	return version, at, nil
}

// root is the directory of the repository, from that of this program.
const root = "../.."

// contents lists the files of an archive.
func contents(binary, version string, at time.Time) (all []file, err error) {
	read := func(from, inArchive, installed string, mode fs.FileMode) {
		content, failed := os.ReadFile(from)
		err = cmp.Or(err, failed)
		all = append(all, file{inArchive, installed, mode, content})
	}
	read(binary, "loadgen", "/usr/bin/loadgen", 0o755)
	read(filepath.Join(root, "LICENSE"), "LICENSE", "/usr/share/doc/loadgen/copyright", 0o644)
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		read(filepath.Join(root, name), name, "/usr/share/doc/loadgen/"+name, 0o644)
	}
	plans, failed := os.ReadDir(filepath.Join(root, "plans"))
	err = cmp.Or(err, failed)
	for _, p := range plans {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(p.Name(), ".sh") {
			mode = 0o755
		}
		read(filepath.Join(root, "plans", p.Name()), "plans/"+p.Name(), "/usr/share/loadgen/plans/"+p.Name(), mode)
	}
	if err != nil {
		return nil, err
	}
	var unit bytes.Buffer
	u := deploy.Unit{Program: "/usr/bin/loadgen", Join: fmt.Sprintf("loadgen-coordinator:%d", deploy.Port)}
	if err := u.Worker(&unit); err != nil {
		return nil, err
	}
	all = append(all, file{"loadgen-worker.service", "/usr/lib/systemd/system/loadgen-worker.service", 0o644, unit.Bytes()})
	for shell, installed := range map[string]string{
		"bash": "/usr/share/bash-completion/completions/loadgen", "zsh": "/usr/share/zsh/site-functions/_loadgen", "fish": "/usr/share/fish/vendor_completions.d/loadgen.fish",
	} {
		var script bytes.Buffer
		c := command.Tree()
		c.SetOut(&script)
		c.SetArgs([]string{"completion", shell})
		if err := c.Execute(); err != nil {
			return nil, err
		}
		all = append(all, file{"completions/" + path.Base(installed) + map[string]string{"bash": ".bash"}[shell], installed, 0o644, script.Bytes()})
	}
	pages, err := manual(version, at)
	all = append(all, pages...)
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.inArchive, b.inArchive) })
	return all, err
}

// manual makes a page of each command's help.
func manual(version string, at time.Time) (pages []file, err error) {
	tree := command.Tree()
	indent(tree)
	dir, err := os.MkdirTemp("", "manual")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := doc.GenManTree(tree, &doc.GenManHeader{Section: "1", Date: &at, Source: "loadgen " + version, Manual: "loadgen"}, dir); err != nil {
		return nil, err
	}
	written, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, page := range written {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		if err := compressed(&packed, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return nil, err
		}
		pages = append(pages, file{"man/" + page.Name() + ".gz", "/usr/share/man/man1/" + page.Name() + ".gz", 0o644, packed.Bytes()})
	}
	return pages, nil
}

// indent has the indented lines of help texts kept as they are: to the writer of man pages, that takes four blanks.
func indent(c *cobra.Command) {
	c.DisableAutoGenTag = true
	c.Long = strings.ReplaceAll(c.Long, "\n  ", "\n    ")
	for _, sub := range c.Commands() {
		indent(sub)
	}
}

// archive writes all files below one directory, as tar.gz.
func archive(w io.Writer, name string, all []file, at time.Time) error {
	return compressed(w, func(w io.Writer) error {
		t := tar.NewWriter(w)
		for _, f := range all {
			head := tar.Header{Name: name + "/" + f.inArchive, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX}
			if err := t.WriteHeader(&head); err != nil {
				return err
			}
			if _, err := t.Write(f.content); err != nil {
				return err
			}
		}
		return t.Close()
	})
}

func compressed(w io.Writer, write func(io.Writer) error) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(write(z), z.Close())
}

// packageOf describes a package, whose files are put below stage.
func packageOf(stage, format, version, arch string, at time.Time, all []file) (*nfpm.Info, error) {
	info := &nfpm.Info{
		Name: "loadgen", Arch: arch, Platform: "linux", Version: version, MTime: at, License: "Apache-2.0",
		Maintainer: "The loadgen authors <loadgen@localhost>", Section: "net", Priority: "optional", Homepage: "https://github.com/loadgen/loadgen",
		Description: "Load generator for caches, databases, web servers and log files\nIts results say whether to believe them.",
	}
	info.RPM.BuildHost = "localhost"
	for _, f := range all {
		from := filepath.Join(stage, filepath.FromSlash(f.inArchive))
		if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, f.content, 0o600); err != nil {
			return nil, err
		}
		to := f.installed
		if format == "deb" {
			to = strings.Replace(to, "/zsh/site-functions/", "/zsh/vendor-completions/", 1)
		}
		info.Contents = append(info.Contents, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: at, Owner: "root", Group: "root"}})
	}
	return nfpm.WithDefaults(info), nfpm.Validate(info)
}

// create writes a file.
func create(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
