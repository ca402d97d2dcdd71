// Command sbom writes what a Go binary is made of, as its build information says, in the form of CycloneDX 1.6 (ECMA-424): its modules with their
// versions and hashes.
//
//	sbom BINARY > BINARY.cdx.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component  component  `json:"component"`
	Properties []property `json:"properties"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the document of a binary. The same binary has the same document.
func write(w io.Writer, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	d := document{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: []component{{
		Type: "library", Ref: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), Name: "std",
		Version: strings.TrimPrefix(info.GoVersion, "go"), URL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}}
	d.Metadata.Component = component{Type: "application", Name: info.Main.Path, Version: info.Main.Version, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	for _, s := range info.Settings {
		d.Metadata.Properties = append(d.Metadata.Properties, property{"go:" + s.Key, s.Value})
	}
	for _, m := range info.Deps {
		c, err := module(m)
		if err != nil {
			return err
		}
		d.Components = append(d.Components, c)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// module returns the component for a module, or for its replacement if it has one. Its hash is that of go.sum.
func module(m *debug.Module) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: "library", Ref: url, Name: m.Path, Version: m.Version, URL: url}
	if text, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		sum, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return c, fmt.Errorf("the hash of %s: %w", m.Path, err)
		}
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c, nil
}
