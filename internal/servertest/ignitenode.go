package servertest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// IgniteNodes are two real nodes of Apache Ignite 2.17.0 in one JVM, each a cluster of its own, with the SQL engine. Each has a cache "items", and the
// caches that it makes have statistics and 32 partitions.
type IgniteNodes struct {
	*Server        // the JVM; its address is that of the first node's client connector
	RESP    string // the first node's other port
	Secure  string // the second node's client connector, which wants TLS, and the user "ignite" with the password "ignite"

	classes   string
	discovery string // the first node's port
}

// IgniteSmall is the size of the first node's region "small", in bytes.
const IgniteSmall = 20 << 20

// igniteTimeout is how long a JVM may take to start two nodes, on a busy machine.
const igniteTimeout = 2 * time.Minute

// StartIgniteNodes starts them, and returns once both take requests; the second shows a certificate. They are killed at the end of the test. The part
// "ignite" is a JDK, archives and a class, which make test-servers fetches and compiles, and openssl.
func StartIgniteNodes(t testing.TB, shows Certificate) *IgniteNodes {
	t.Helper()
	classes, err := igniteClasses()
	Require(t, "ignite", err)
	dir := t.TempDir()
	store := filepath.Join(dir, "store.p12")
	output(t, "openssl", "pkcs12", "-export", "-inkey", shows.Key, "-in", shows.Cert, "-out", store, "-passout", "pass:changeit")
	local := func(port string) string { return "127.0.0.1:" + port }
	first, resp, second := freePort(t), freePort(t), freePort(t)
	n := &IgniteNodes{Server: &Server{t: t, Addr: local(first), done: make(chan struct{})}, RESP: local(resp), Secure: local(second), classes: classes, discovery: freePort(t)}
	startIgnite(n.Server, classes, dir,
		"client="+second, "discovery="+freePort(t), "tls="+store, "users=true", "dir="+filepath.Join(dir, "second"), "--",
		"client="+first, "discovery="+n.discovery, "resp="+resp, "small="+strconv.Itoa(IgniteSmall), "dir="+dir)
	return n
}

// IgniteInstalled returns nil if make test-servers has installed Ignite.
func IgniteInstalled() error {
	_, err := igniteClasses()
	return err
}

// StartIgniteNode starts one real node, a cluster of its own, with the SQL engine, and returns the address of its client connector once it takes requests.
// It is killed at the end of the test.
func StartIgniteNode(t testing.TB) (addr string) {
	t.Helper()
	classes, err := igniteClasses()
	Require(t, "ignite", err)
	dir, s := t.TempDir(), local(t)
	startIgnite(s, classes, dir, "client="+s.port(), "discovery="+freePort(t), "dir="+dir)
	return s.Addr
}

// Join starts a third node, in a JVM of its own, which makes a cluster with the first. It returns once the node takes requests; its copies of what was
// there before come later.
func (n *IgniteNodes) Join() *Server {
	n.t.Helper()
	dir, s := n.t.TempDir(), local(n.t)
	startIgnite(s, n.classes, dir, "client="+s.port(), "discovery="+freePort(n.t), "joins="+n.discovery, "dir="+dir)
	return s
}

// startIgnite starts a JVM with nodes, of which one works in dir, and waits for them.
func startIgnite(s *Server, classes, dir string, nodes ...string) {
	s.t.Helper()
	args := []string{"-Xms64m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} // ready in a third of the processor time
	for _, opened := range strings.Fields(igniteOpens) {
		args = append(args, "--add-opens="+opened+"=ALL-UNNAMED")
	}
	cmd := exec.Command("java", append(append(args, "-DIGNITE_UPDATE_NOTIFIER=false", "-DIGNITE_QUIET=true", "-DIGNITE_HOME="+dir, "-Djava.io.tmpdir="+dir,
		"-Djava.net.preferIPv4Stack=true", "-cp", classes, "Node"), nodes...)...)
	_, err := cmd.StdinPipe() // at whose end the JVM ends, too
	require.NoError(s.t, err)
	s.start(cmd)
	s.within(igniteTimeout, func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
}

// igniteClasses returns the class path.
func igniteClasses() (string, error) {
	for _, program := range []string{"java", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", errors.New(program + " not found")
		}
	}
	var path []string
	for _, name := range []string{
		"ignite/Node.class", "cache-api-1.0.0.jar", "ignite-core-2.17.0.jar", "ignite-indexing-2.17.0.jar", "h2-1.4.197.jar", "lucene-core-8.11.2.jar",
	} {
		file, err := cached(name)
		if err != nil {
			return "", err
		}
		path = append(path, strings.TrimSuffix(file, "/Node.class"))
	}
	return strings.Join(path, string(os.PathListSeparator)), nil
}

// igniteOpens are the packages of the JDK that Ignite reaches into.
const igniteOpens = `java.base/jdk.internal.access java.base/jdk.internal.misc java.base/sun.nio.ch java.base/sun.util.calendar java.base/java.io
	java.base/java.nio java.base/java.net java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.locks
	java.base/java.util.concurrent.atomic java.base/java.lang java.base/java.lang.invoke java.base/java.lang.reflect java.base/java.math
	java.base/java.time java.base/java.text java.base/sun.reflect.generics.reflectiveObjects java.management/com.sun.jmx.mbeanserver
	java.management/sun.management jdk.internal.jvmstat/sun.jvmstat.monitor jdk.management/com.sun.management.internal java.sql/java.sql`
