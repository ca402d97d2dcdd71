package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestDashboardsAreFresh compares the files with what is built.
func TestDashboardsAreFresh(t *testing.T) {
	dir := filepath.Join("..", "..", "grafana", "dashboards")
	for name, b := range boards() {
		want, err := text(b)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: go run -C tools/dashboards . ../../grafana/dashboards", name)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != len(boards()) {
		t.Errorf("%d files, not %d: %v", len(files), len(boards()), err)
	}
}
