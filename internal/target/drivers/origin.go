package drivers

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
)

// Origins returns where each of the program's own drivers comes from, by name: module@version, and the module's sum if it came from a proxy. Two
// programs with equal words have the same driver, whatever they were built for. What a tree had that nobody has committed has no version of its
// own, so the program's hash stands for it.
func (s *Set) Origins() (map[string]string, error) {
	if s.own == 0 {
		return nil, nil
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	words, hash := map[string]string{}, ""
	for _, d := range s.All[len(s.All)-s.own:] {
		m := moduleOf(info, d)
		sum := m.Sum
		if m.Version == "(devel)" || strings.HasSuffix(m.Version, "+dirty") {
			if hash == "" {
				var err error
				if hash, err = ownHash(); err != nil {
					return nil, fmt.Errorf("driver %q is of a tree without a version, and the program cannot be read to tell it from others: %w", d.Name(), err)
				}
			}
			sum = hash
		}
		words[d.Name()] = strings.TrimSpace(m.Path + "@" + m.Version + " " + sum)
	}
	return words, nil
}

// moduleOf returns the module that a driver's type is from, or what replaces it.
func moduleOf(info *debug.BuildInfo, d any) debug.Module {
	t := reflect.TypeOf(d)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	in := func(m *debug.Module) bool { return strings.HasPrefix(t.PkgPath()+"/", m.Path+"/") }
	found := info.Main // package main is in no other
	for _, m := range info.Deps {
		if in(m) && (!in(&found) || len(m.Path) > len(found.Path)) {
			found = *m
		}
	}
	if found.Replace != nil {
		found = *found.Replace
	}
	found.Path, found.Version = cmp.Or(found.Path, t.PkgPath()), cmp.Or(found.Version, "(devel)")
	return found
}

// ownHash returns the hash of this program's file.
func ownHash() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}
