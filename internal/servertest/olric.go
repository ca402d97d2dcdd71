package servertest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Olric returns nil if make test-servers has built the program that runs nodes of Olric (tools/olric), which plans/olric.sh starts.
func Olric() error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "loadgen", "olric")); err != nil {
		return fmt.Errorf("no olric: %w", err)
	}
	return nil
}
