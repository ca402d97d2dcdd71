package servertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Mashona runs a Java program, given as its one source file, with the log library Mashona 1.1.0 on its class path, and returns its output. If the
// program fails, so does the test. The part "mashona" is a JDK and two jars, which make test-servers fetches.
func Mashona(t testing.TB, source string, args ...string) string {
	t.Helper()
	path, err := mashonaPath()
	Require(t, "mashona", err)
	quick := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, source} // most of the time goes into starting and compiling
	output, err := exec.Command("java", append(quick, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("java %s: %v\n%s", source, err, output)
	}
	return string(output)
}

// mashonaPath returns the class path.
func mashonaPath() (string, error) {
	for _, program := range []string{"java", "javac"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", errors.New(program + " not found")
		}
	}
	path := ""
	for _, jar := range []string{"mashona-logwriting-1.1.0.jar", "jboss-logging-3.4.1.Final.jar"} {
		file, err := archive(jar)
		if err != nil {
			return "", err
		}
		path += file + string(os.PathListSeparator)
	}
	return path, nil
}

// archive returns the path of an archive of Java classes that make test-servers fetches.
func archive(name string) (path string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "loadgen", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no archive: %w", err)
	}
	return path, nil
}
