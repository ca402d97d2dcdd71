package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

var _ driver.Informant = Driver{}

const (
	usualStatus = "/stub_status"
	maxStatus   = 1 << 20 // the longest status page, in bytes; real ones have a hundred to a few thousand
)

// figures are those of nginx's stub_status, by its names.
var figures = [...]driver.Figure{
	{Name: "active_connections"},
	{Name: "accepts", Counter: true},
	{Name: "handled", Counter: true},
	{Name: "requests", Counter: true},
	{Name: "reading"},
	{Name: "writing"},
	{Name: "waiting"},
}

// apacheFigures are those of Apache's server-status?auto that need a unit or are counters.
var apacheFigures = [...]driver.Figure{
	{Name: "total_accesses", Counter: true},
	{Name: "total_kbytes", Counter: true},
	{Name: "total_duration", Counter: true},
	{Name: "uptime", Unit: "s", Counter: true},
	{Name: "cpuuser", Unit: "s", Counter: true},
	{Name: "cpusystem", Unit: "s", Counter: true},
}

// Figures lists the figures of nginx.
func (Driver) Figures() []driver.Figure { return slices.Clone(figures[:]) }

// Describe returns the unit and kind of a figure: as Figures has it, or one of Apache's.
func (Driver) Describe(name string) driver.Figure {
	for _, known := range [][]driver.Figure{figures[:], apacheFigures[:]} {
		if i := slices.IndexFunc(known, func(f driver.Figure) bool { return f.Name == name }); i >= 0 {
			return known[i]
		}
	}
	return driver.Figure{Name: name}
}

// AppendQuestion requests the status page.
func (Driver) AppendQuestion(dst []byte, link driver.Link) ([]byte, error) {
	cfg, authorization, err := settings(link)
	if err != nil {
		return nil, err
	}
	page := cfg.Status
	if page == "" {
		page = usualStatus
	}
	dst = fmt.Appendf(dst, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: loadgen\r\n", page, host(cfg, link.Endpoint))
	if authorization != "" {
		dst = fmt.Appendf(dst, "Authorization: %s\r\n", authorization)
	}
	return append(dst, "\r\n"...), nil
}

// ParseFigures reads a status page. Names become lower case, with _ for bytes that a name cannot have.
func (Driver) ParseFigures(b []byte) (map[string]string, int, error) {
	source := &ending{from: bytes.NewReader(b)}
	in := bufio.NewReader(source)
	told, err := readPage(in)
	switch {
	case err == nil:
		return told, len(b) - source.from.Len() - in.Buffered(), nil
	case source.met && len(b) > maxStatus:
		return nil, 0, errors.New("the status page has no end within 1 MiB")
	case source.met: // the page is incomplete
		return nil, 0, nil
	}
	return nil, 0, fmt.Errorf("the status page: %w", err)
}

// ending is a reader that records whether somebody read past its end.
type ending struct {
	from *bytes.Reader
	met  bool
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	e.met = e.met || err != nil
	return n, err
}

func readPage(in *bufio.Reader) (map[string]string, error) {
	response, err := http.ReadResponse(in, nil)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server says %d %s: name its own with status = \"/…\" in the target", response.StatusCode, http.StatusText(response.StatusCode))
	case response.ContentLength < 0 && len(response.TransferEncoding) == 0:
		return nil, errors.New("it does not say how long it is")
	}
	page, err := io.ReadAll(response.Body)
	return readStatus(string(page)), err
}

// readStatus reads lines such as "Total Accesses: 5" and "Reading: 0 Writing: 1 Waiting: 0", and nginx's "server accepts handled requests", whose
// numbers are on the next line.
func readStatus(page string) map[string]string {
	told := map[string]string{}
	var names []string
	for line := range strings.Lines(page) {
		words := strings.Fields(line)
		switch {
		case len(names) > 0 && len(words) == len(names):
			for i, name := range names {
				told[name] = words[i]
			}
			names = nil
		case len(words) > 1 && words[0] == "server" && !strings.Contains(line, ":"):
			names = words[1:]
		default:
			names = nil
			readPairs(told, words)
		}
	}
	return told
}

// readPairs splits a line into names, which may have several words and end in a colon, and one-word values.
func readPairs(told map[string]string, words []string) {
	var name []string
	for i := 0; i < len(words); i++ {
		last, ended := strings.CutSuffix(words[i], ":")
		name = append(name, identifier(last))
		if ended && i+1 < len(words) {
			i++
			told[strings.Join(name, "_")] = words[i]
			name = nil
		}
	}
}

// identifier replaces whatever a figure's name cannot have by _.
func identifier(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(word))
}
