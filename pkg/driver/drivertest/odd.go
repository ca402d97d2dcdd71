package drivertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Odd is a server that stores values correctly but deviates in other ways. The zero value does not deviate.
type Odd struct {
	Name    string            // name of the deviation
	Note    string            // for Suite.Note
	Answers map[string]string // by command, the answer in place of the usual one; with [Hangup], it closes the connection, as proxies do
	Missing map[string]string // the same for a missing key
}

// Hangup in [Odd.Answers] stands for closing the connection.
const Hangup = ""

const silent = "the server says nothing of itself"

// OddRESP returns variants of servers that speak RESP2: users with restricted rights, proxies, and programs other than Redis.
func OddRESP() []Odd {
	const noInfo, noConfig = "-NOPERM this user has no permissions to run the 'info' command\r\n", "-NOPERM this user has no permissions to run the 'config|get' command\r\n"
	return []Odd{
		{Name: "INFO is not permitted", Note: silent, Answers: map[string]string{"INFO": noInfo, "CONFIG": noConfig}},
		{Name: "closes for INFO", Note: silent, Answers: map[string]string{"INFO": Hangup}},
		{Name: "closes for CONFIG", Note: "the server says nothing of its settings", Answers: map[string]string{"CONFIG": Hangup}},
		{Name: "knows no INFO and no CONFIG", Note: silent, Answers: map[string]string{"INFO": "-ERR unknown command 'INFO'\r\n", "CONFIG": "-ERR unknown command 'CONFIG'\r\n"}},
		{Name: "INFO is a status", Note: silent, Answers: map[string]string{"INFO": "+OK\r\n"}},
		{Name: "PING is answered by a bulk string", Answers: map[string]string{"PING": "$4\r\nPONG\r\n"}},
		{Name: "PING is not permitted", Answers: map[string]string{"PING": "-NOPERM this user has no permissions to run the 'ping' command\r\n"}},
		{Name: "a missing key is the null of RESP3", Missing: map[string]string{"GET": "_\r\n"}},
		{Name: "a missing key is a null array", Missing: map[string]string{"GET": "*-1\r\n"}},
		{Name: "what cannot be deleted is a null", Missing: map[string]string{"DEL": "$-1\r\n"}},
	}
}

// OddMemcached returns variants of servers that know memcached's commands, meta and classic.
func OddMemcached() []Odd {
	return []Odd{
		{Name: "closes for stats", Note: silent, Answers: map[string]string{"stats": Hangup}},
		{Name: "knows no stats", Note: silent, Answers: map[string]string{"stats": "ERROR\r\n"}},
		{Name: "knows no version and no stats", Note: silent, Answers: map[string]string{"stats": "ERROR\r\n", "version": "ERROR\r\n"}},
	}
}

// OddProxies returns variants of proxies that know only memcached's classic commands, and of servers whose answers to them are unusual.
func OddProxies() []Odd {
	return []Odd{
		{Name: "closes for version", Note: silent, Answers: map[string]string{"version": Hangup}},
		{Name: "closes for stats", Note: silent, Answers: map[string]string{"stats": Hangup}},
		{Name: "refuses version, and closes for stats", Note: silent, Answers: map[string]string{"version": "ERROR\r\n", "stats": Hangup}},
	}
}

// DialRESP returns a function for Suite.Dial that connects to such a server. The server ends with the test.
func (o Odd) DialRESP(t testing.TB) func() (net.Conn, error) { return o.dial(t, o.serveRESP) }

// DialMemcached is DialRESP for memcached's protocol.
func (o Odd) DialMemcached(t testing.TB) func() (net.Conn, error) { return o.dial(t, o.serveMemcached) }

// stock holds the values that a server stores.
type stock struct {
	mu     sync.Mutex
	values map[string]string
}

func (o Odd) dial(t testing.TB, serve func(*stock, *bufio.Reader, io.Writer) error) func() (net.Conn, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kept := &stock{values: map[string]string{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for serve(kept, in, conn) == nil {
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); ended.Wait() })
	return func() (net.Conn, error) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() }) // before the server waits for it to end
		}
		return conn, err
	}
}

// say writes the usual answer, or the deviating one.
func (o Odd) say(out io.Writer, manners map[string]string, command, usual string) error {
	if own, ok := manners[command]; ok {
		usual = own
	}
	if usual == Hangup {
		return io.EOF
	}
	_, err := io.WriteString(out, usual)
	return err
}

// serveRESP answers one command.
func (o Odd) serveRESP(kept *stock, in *bufio.Reader, out io.Writer) error {
	args, err := readArray(in)
	if err != nil {
		return err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	command := args[0]
	answer := func(usual string) error { return o.say(out, o.Answers, command, usual) }
	switch {
	case command == "PING":
		return answer("+PONG\r\n")
	case command == "INFO":
		return answer(bulk("redis_version:7.0.0\r\nredis_mode:standalone\r\n"))
	case command == "CONFIG":
		return answer("*0\r\n")
	case command == "SET" && len(args) >= 3:
		kept.values[args[1]] = args[2]
		return answer("+OK\r\n")
	case command != "GET" && command != "DEL" || len(args) != 2:
		return answer(fmt.Sprintf("-ERR unknown command '%s'\r\n", command))
	}
	value, there := kept.values[args[1]]
	switch {
	case !there && command == "GET":
		return o.say(out, o.Missing, command, "$-1\r\n")
	case !there:
		return o.say(out, o.Missing, command, ":0\r\n")
	case command == "GET":
		return answer(bulk(value))
	}
	delete(kept.values, args[1])
	return answer(":1\r\n")
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// readArray reads a command.
func readArray(in *bufio.Reader) ([]string, error) {
	count, err := readSize(in, "*")
	if err != nil {
		return nil, err
	}
	var args []string
	for range count {
		size, err := readSize(in, "$")
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:size]))
	}
	if len(args) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return args, nil
}

// readSize reads a line of a letter and a number.
func readSize(in *bufio.Reader, letter string) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, letter)))
}

// serveMemcached answers one command.
func (o Odd) serveMemcached(kept *stock, in *bufio.Reader, out io.Writer) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return io.ErrUnexpectedEOF
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	answer := func(usual string) error { return o.say(out, o.Answers, words[0], usual) }
	switch words[0] {
	case "mn":
		return answer("MN\r\n")
	case "version":
		return answer("VERSION 1.6.99\r\n")
	case "stats":
		return answer("STAT pid 1\r\nEND\r\n")
	}
	if len(words) < 2 {
		return answer("ERROR\r\n")
	}
	value, there := kept.values[words[1]]
	switch {
	case words[0] == "ms" && len(words) >= 3:
		if err := kept.read(words[1], words[2], in); err != nil {
			return err
		}
		return answer("HD\r\n")
	case words[0] == "set" && len(words) == 5:
		if err := kept.read(words[1], words[4], in); err != nil {
			return err
		}
		return answer("STORED\r\n")
	case words[0] == "get" && there:
		return answer(fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", words[1], len(value), value))
	case words[0] == "get":
		return answer("END\r\n")
	case words[0] == "delete" && there:
		delete(kept.values, words[1])
		return answer("DELETED\r\n")
	case words[0] == "delete":
		return answer("NOT_FOUND\r\n")
	case words[0] == "mg" && there:
		return answer(fmt.Sprintf("VA %d\r\n%s\r\n", len(value), value))
	case words[0] == "mg":
		return answer("EN\r\n")
	case words[0] == "md" && there:
		delete(kept.values, words[1])
		return answer("HD\r\n")
	case words[0] == "md":
		return answer("NF\r\n")
	}
	return answer("ERROR\r\n")
}

// read stores a value whose size the command has announced.
func (s *stock) read(key, announced string, in *bufio.Reader) error {
	size, err := strconv.Atoi(announced)
	if err != nil {
		return err
	}
	block := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(in, block); err != nil {
		return err
	}
	s.values[key] = string(block[:size])
	return nil
}
