package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// TestOfThisBinary writes the document of the test's own binary: it names the standard library and has no module twice.
func TestOfThisBinary(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := write(w, exe); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatal("two documents of one binary")
	}
	var d document
	if err := json.Unmarshal(first.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range d.Components {
		if c.Ref == "" || seen[c.Ref] {
			t.Errorf("component %q without a name of its own", c.Ref)
		}
		seen[c.Ref] = true
	}
	if d.Format != "CycloneDX" || len(d.Components) == 0 || d.Components[0].Name != "std" || len(d.Metadata.Component.Hashes) != 1 {
		t.Errorf("%+v", d)
	}
}

// TestNoBinary is an error.
func TestNoBinary(t *testing.T) {
	if err := write(new(bytes.Buffer), "main.go"); err == nil {
		t.Error("a text has a document")
	}
}
