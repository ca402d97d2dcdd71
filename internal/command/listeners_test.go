package command_test

import (
	"bufio"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// listening is a loadgen that opens ports.
type listening struct {
	args    []string
	guarded func(t *testing.T, port uint16) // looks whether it asks everybody who they are; nil: it does not
}

// everywhere are hosts that mean all addresses of a machine.
var everywhere = []string{"0.0.0.0", "[::]"}

// everyListener lists the commands that open ports, each with every kind of address.
func everyListener(t *testing.T, hosts []string) []listening {
	dir := t.TempDir()
	plan, password := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(plan, []byte(closedPlan), 0o600))
	require.NoError(t, os.WriteFile(password, []byte(canary), 0o600))
	flag := func(name, host string) []string {
		if host == "" {
			return nil
		}
		return []string{name, host + ":0"}
	}
	var all []listening
	for _, host := range hosts {
		serve := append([]string{"target", "serve"}, flag("--listen", host)...)
		all = append(all,
			listening{args: append(slices.Clone(serve), "--protocol", "resp")},
			listening{args: append(slices.Clone(serve), "--protocol", "memcached")},
			listening{args: append(slices.Clone(serve), "--protocol", "resp", "--password-file", password), guarded: asksForPassword},
			listening{args: append(slices.Clone(serve), "--protocol", "memcached", "--password-file", password)},
			pageOf(listening{args: append([]string{"worker", "--join", "127.0.0.1:1"}, flag("--http", host)...)}, host),
			pageOf(listening{args: append([]string{"worker", "--join", "127.0.0.1:1", "--http-name", "x.example"}, flag("--http", host)...)}, host))
		for _, http := range append(hosts, "") {
			args := []string{"coordinator", "run", plan, "--runs", filepath.Join(dir, "runs"), "--workers", "1", "--wait", "10m"}
			all = append(all, listening{args: slices.Concat(args, flag("--listen", host), flag("--http", http)), guarded: asksForSomething})
		}
	}
	return all
}

// pageOf is a command that serves a page at a host.
func pageOf(l listening, host string) listening {
	if slices.Contains(everywhere, host) {
		l.guarded = asksForToken
	}
	return l
}

// TestNoPortBeyondLoopbackIsUnguarded starts everything that opens a port, at every kind of address, and examines the kernel's sockets.
func TestNoPortBeyondLoopbackIsUnguarded(t *testing.T) {
	t.Parallel()
	for _, l := range everyListener(t, append([]string{"127.0.0.1", "localhost", "[::1]"}, everywhere...)) {
		ports := l.start(t, "")
		beyond := strings.Contains(strings.Join(l.args, " "), "0.0.0.0:") || strings.Contains(strings.Join(l.args, " "), "[::]:")
		refused := beyond && l.guarded == nil || slices.Contains(l.args, "memcached") && slices.Contains(l.args, "--password-file")
		require.Equal(t, refused, len(ports) == 0, "%q: %v", l.args, ports)
	}
}

// TestHostsFileThatLies runs with a hosts file that maps localhost to every address of this machine.
func TestHostsFileThatLies(t *testing.T) {
	t.Parallel()
	servertest.Require(t, "mount", exec.Command("unshare", "-m", "true").Run())
	for _, lie := range []string{"0.0.0.0 localhost", ":: localhost", "127.0.0.1 localhost\n0.0.0.0 localhost"} {
		hosts := filepath.Join(t.TempDir(), "hosts")
		require.NoError(t, os.WriteFile(hosts, []byte(lie+"\n"), 0o644))
		for _, l := range everyListener(t, []string{"localhost"}) {
			opens := slices.Contains(l.args, "--password-file") && slices.Contains(l.args, "resp") // whatever the address
			require.Equal(t, opens, len(l.start(t, hosts)) > 0, "%q", l.args)
		}
	}
}

// start starts the command, with its own hosts file unless that is "", and returns the ports that it opens. None of them may be open to others
// without a password.
func (l listening) start(t *testing.T, hosts string) []netip.AddrPort {
	t.Helper()
	cmd := command(t, l.args...)
	if hosts != "" {
		under := exec.Command("unshare", append([]string{"-m", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts, "loadgen"}, l.args...)...)
		under.Env = cmd.Env
		cmd = under
	}
	p := start(t, cmd)
	defer func() { _ = p.cmd.Process.Kill(); <-p.done }()
	want := 0
	for i, arg := range l.args {
		if (arg == "--listen" || arg == "--http") && strings.HasSuffix(l.args[i+1], ":0") {
			want++
		}
	}
	var ports []netip.AddrPort
	require.Eventually(t, func() bool {
		select {
		case <-p.done:
			ports = nil
			return true
		default:
			ports = listeners(t, p.cmd.Process.Pid)
			return len(ports) >= want
		}
	}, time.Minute, 5*time.Millisecond, "%q", l.args)
	for _, at := range ports {
		if !at.Addr().Unmap().IsLoopback() {
			require.NotNil(t, l.guarded, "%q listens at %s", l.args, at)
			l.guarded(t, at.Port())
		}
	}
	return ports
}

// asksForPassword looks at a cache node.
func asksForPassword(t *testing.T, port uint16) {
	require.Contains(t, firstLine(t, port, "GET k\r\n"), "NOAUTH")
	require.Contains(t, firstLine(t, port, "HELLO 3 AUTH default wrong\r\n"), "WRONGPASS")
	require.Contains(t, firstLine(t, port, "AUTH "+canary+"\r\n"), "+OK")
}

// asksForCertificate checks a coordinator: without a certificate nobody gets an answer, in cleartext or over TLS, except that a worker that asks for a
// certificate is told that it needs a token.
func asksForCertificate(t *testing.T, port uint16) {
	address := fmt.Sprintf("localhost:%d", port)
	for _, config := range []*tls.Config{
		{NextProtos: []string{"h2"}},
		{NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12},
		{NextProtos: []string{"h2", "http/1.1"}},
		{},
	} {
		config.InsecureSkipVerify = true
		conn, err := tls.Dial("tcp", address, config)
		if err != nil {
			continue
		}
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		n, err := conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, n)
		require.NoError(t, conn.Close())
	}
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	require.NoError(t, err)
	b, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.LessOrEqual(t, len(b), 7, "no more than an alert of TLS: %q", b)
	enrol, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"loadgen-enrol/1"}})
	require.NoError(t, err)
	defer enrol.Close()
	require.NoError(t, enrol.SetDeadline(time.Now().Add(time.Minute)))
	_, err = enrol.Write([]byte("\x00\x02{}"))
	require.NoError(t, err)
	b, _ = io.ReadAll(enrol) // however it is closed
	require.Contains(t, string(b), "neither a token nor a certificate was shown")
}

// asksForSomething checks a coordinator's port: that for workers, or that of its page.
func asksForSomething(t *testing.T, port uint16) {
	conn, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", port), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err == nil {
		page := conn.ConnectionState().NegotiatedProtocol == "http/1.1"
		require.NoError(t, conn.Close())
		if page {
			asksForToken(t, port)
			return
		}
	}
	asksForCertificate(t, port)
}

// asksForToken checks a page: nobody gets an answer in cleartext, over an older TLS, or without a token.
func asksForToken(t *testing.T, port uint16) {
	address := fmt.Sprintf("localhost:%d", port)
	_, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	require.Error(t, err)
	require.NotContains(t, said(t, func() (net.Conn, error) { return net.Dial("tcp", address) }, "/metrics"), "loadgen_")
	for _, path := range []string{"/metrics", "/sd", "/healthz", "/", "/enter/", "/enter/x"} {
		reply := said(t, func() (net.Conn, error) {
			return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		}, path)
		require.True(t, strings.HasPrefix(reply, "HTTP/1.1 401 "), "%s: %s", path, reply)
		require.NotContains(t, reply, "loadgen_")
	}
}

// said is what a page answers to a request without a token.
func said(t *testing.T, dial func() (net.Conn, error), path string) string {
	conn, err := dial()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
	require.NoError(t, err)
	b, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	return string(b)
}

// firstLine says something to a node and returns the first line that it answers.
func firstLine(t *testing.T, port uint16, words string) string {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("localhost:%d", port))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write([]byte(words))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return line
}

var socketLink = regexp.MustCompile(`^socket:\[(\d+)\]$`)

// listeners returns the TCP ports that a process and its children listen on, from what ss reads.
func listeners(t *testing.T, pid int) []netip.AddrPort {
	t.Helper()
	inodes := map[string]bool{}
	for _, pid := range family(pid) {
		links, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
		require.NoError(t, err)
		for _, link := range links {
			target, _ := os.Readlink(link) // it may be closed by now
			if m := socketLink.FindStringSubmatch(target); m != nil {
				inodes[m[1]] = true
			}
		}
	}
	var found []netip.AddrPort
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			const local, state, inode, listening = 1, 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listening && inodes[f[inode]] {
				found = append(found, kernelAddress(t, f[local]))
			}
		}
	}
	return found
}

// family is a process and all its descendants.
func family(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, file := range files {
			text, _ := os.ReadFile(file) // it may have ended
			for _, word := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// kernelAddress reads an address as /proc/net/tcp writes it: words of four bytes, each in the order of this machine, then the port.
func kernelAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, ok := strings.Cut(text, ":")
	require.True(t, ok, text)
	b, err := hex.DecodeString(host)
	require.NoError(t, err)
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	addr, ok := netip.AddrFromSlice(b)
	require.True(t, ok)
	number, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err)
	return netip.AddrPortFrom(addr, uint16(number))
}
