package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// fedoraTimeout is how long a JVM may take to unpack the repository and start it.
const fedoraTimeout = 3 * time.Minute

// Fedora starts the repository Fedora 4.7.5 (LDP) on port 8080 of a machine's loopback, with its data in files, and returns once it listens. It is killed
// at the end of the test. Its message broker listens on every address, so on makes the command run on a machine that nobody else can reach. The part
// "fedora" is a Java runtime and two archives, which make test-servers fetches.
func Fedora(t testing.TB, on func(*exec.Cmd) *exec.Cmd) (addr string) {
	t.Helper()
	jetty, war, err := fedoraArchives()
	Require(t, "fedora", err)
	dir := t.TempDir()
	s := &Server{t: t, Addr: "127.0.0.1:8080", done: make(chan struct{})}
	s.start(on(exec.Command("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", // ready in a third of the processor time
		"--add-opens=java.base/java.lang=ALL-UNNAMED", "-Djava.io.tmpdir="+dir, "-Dfcrepo.home="+filepath.Join(dir, "home"),
		"-Dfcrepo.modeshape.configuration=classpath:/config/file-simple/repository.json",
		"-jar", jetty, "--host", "127.0.0.1", "--port", "8080", "--path", "/", war)))
	s.within(fedoraTimeout, func() bool { return listens(s.Pid(), 8080) })
	return s.Addr
}

// listens reports whether somebody listens on a port in the network namespace of a process, which need not be the test's.
func listens(pid, port int) bool {
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return false
		}
		for line := range bytes.Lines(text) {
			if f := bytes.Fields(line); len(f) > 3 && bytes.HasSuffix(f[1], fmt.Appendf(nil, ":%04X", port)) && string(f[3]) == "0A" {
				return true
			}
		}
	}
	return false
}

// fedoraArchives returns the paths of a servlet container and of the repository.
func fedoraArchives() (jetty, war string, err error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", "", errors.New("java not found")
	}
	jetty, err = cached("jetty-runner-9.4.54.v20240208.jar")
	if err != nil {
		return "", "", err
	}
	war, err = cached("fcrepo-webapp-4.7.5.war")
	return jetty, war, err
}
