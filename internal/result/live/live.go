// Package live keeps a page in browsers up to date while it changes, by server-sent events (HTML Living Standard, section 9.2).
//
// A page is a document that consists of parts: elements <live-part>, in which the document keeps the place and whose content is sent by itself. One
// rendering serves all watchers; without a watcher, nothing is rendered. The changes since the previous rendering are sent, in events of at most
// [MaxEvent] bytes. A watcher that connects, or reconnects, first gets everything.
//
// Rendering takes at most 2 % of the time of one processor: the pause after a rendering is at least 50 times as long as the rendering took.
//
// # Events
//
//	part    {"id":"p3","html":"…","more":true}   replaces a part, or its first piece; without more, the piece is the part's last
//	shown   {}                                   all parts of a rendering have come
//	end     {"another":true}                     nothing more will come; with another, a further feed will answer at the same address
//
// The part "" is the document, with an empty element for each part. Parts are numbered. A part with a name, <live-part of="NAME">, has that name
// instead of a number and numbers the parts in it separately, so that they keep their ids when other parts come before them. Names are unique in a
// document.
package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// MaxEvent is the largest size of an event, in bytes.
const MaxEvent = 20_000

const (
	// MaxWatchers bounds the watchers at a time.
	MaxWatchers = 256

	between     = 50               // pause between renderings, as a multiple of the last one's time
	behind      = 3                // renderings that a watcher may be behind before it is dropped
	writeWithin = 10 * time.Second // time to send one rendering
)

// Feed sends a page to its watchers. Its methods may be called from any goroutine.
type Feed struct {
	welcome func(*http.Request)
	due     chan func() (string, error)
	done    chan struct{} // closed when nothing renders any more

	mu       sync.Mutex
	parts    []part    // of the last rendering
	next     time.Time // when another may begin
	end      []byte    // the last event, once parts are the last
	watchers map[chan []byte]struct{}
}

// part is a part of a document.
type part struct{ id, html string }

// New returns a feed without any content. welcome is called with each request whose connection may stay open for long. End the feed by Close.
func New(welcome func(*http.Request)) *Feed {
	f := &Feed{welcome: welcome, due: make(chan func() (string, error), 1), done: make(chan struct{}), watchers: map[chan []byte]struct{}{}}
	go f.work() // ends with Close, which waits for it
	return f
}

// Due says whether somebody watches, and another rendering may begin.
func (f *Feed) Due() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers) > 0 && len(f.due) == 0 && !time.Now().Before(f.next)
}

// Show renders and sends the document, on another goroutine. It does nothing if the previous rendering has not begun.
func (f *Feed) Show(render func() (string, error)) {
	select {
	case f.due <- render:
	default:
	}
}

// work renders what is shown.
func (f *Feed) work() {
	defer close(f.done)
	for render := range f.due {
		began := time.Now()
		f.mu.Lock()
		f.next = began.Add(time.Hour) // no other while this one goes on
		f.mu.Unlock()
		html, err := render()
		if err == nil {
			f.send(split(html))
		}
		f.mu.Lock()
		f.next = time.Now().Add(between * time.Since(began))
		f.mu.Unlock()
	}
}

// send sends the changes of a document to all watchers. Watchers that are too far behind are dropped, and reconnect.
func (f *Feed) send(parts []part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := map[string]string{}
	for _, p := range f.parts {
		before[p.id] = p.html
	}
	var changed []part
	for _, p := range parts {
		if old, there := before[p.id]; !there || old != p.html {
			changed = append(changed, p)
		}
	}
	f.parts = parts
	if len(changed) == 0 {
		return
	}
	sent := events(changed)
	for w := range f.watchers {
		select {
		case w <- sent:
		default:
			delete(f.watchers, w)
			close(w)
		}
	}
}

// Watched says whether somebody watches.
func (f *Feed) Watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers) > 0
}

// Close ends the feed, and all streams once they have been sent the last document: html or, if that is "", the one shown last. Later watchers are
// sent the same. another tells watchers to reconnect for another feed.
func (f *Feed) Close(html string, another bool) {
	close(f.due)
	<-f.done
	if html != "" {
		f.send(split(html))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = event("end", struct {
		Another bool `json:"another,omitempty"`
	}{another})
	for w := range f.watchers {
		select {
		case w <- f.end:
		default: // it reconnects
		}
		delete(f.watchers, w)
		close(w)
	}
}

// join adds a watcher, which will first get everything there is. It returns nil and the reason if there are too many.
func (f *Feed) join() (w chan []byte, refused string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.watchers) >= MaxWatchers {
		return nil, fmt.Sprintf("%d browsers watch already, the most that may: come back later", MaxWatchers)
	}
	w = make(chan []byte, behind)
	if len(f.parts) > 0 {
		w <- events(f.parts)
	}
	if f.end != nil {
		w <- f.end
		close(w)
		return w, ""
	}
	f.watchers[w] = struct{}{}
	return w, ""
}

// leave removes a watcher.
func (f *Feed) leave(w chan []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.watchers, w)
}

// ServeHTTP sends the stream until the feed is closed, the client goes away, or it does not keep up.
func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mine, refused := f.join()
	if refused != "" {
		w.Header().Set("Retry-After", "10")
		w.Header().Set("Connection", "close")
		http.Error(w, refused, http.StatusServiceUnavailable)
		return
	}
	defer f.leave(mine)
	f.welcome(r)
	to := http.NewResponseController(w)
	if to.SetReadDeadline(time.Time{}) != nil { // the server's deadline is for requests, and would end the stream
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	sent := []byte("retry: 2000\n\n")
	for more := true; more; {
		if to.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
			return
		}
		if _, err := w.Write(sent); err != nil {
			return
		}
		if to.Flush() != nil {
			return
		}
		select {
		case sent, more = <-mine: // nothing, if there is no more
		case <-r.Context().Done():
			return
		}
	}
}

const (
	opening = "<live-part" // a name may follow
	naming  = ` of="`
	closing = "</live-part>"
)

// mark matches what begins or ends a part.
var mark = regexp.MustCompile(`</?live-part[^>]*>`)

// scope numbers parts.
type scope struct {
	prefix string
	n      int
}

// split takes the parts out of a document. They may be in each other.
func split(html string) []part {
	parts := []part{{}}
	texts := []*strings.Builder{{}} // of the open parts; the first is the document's
	open := []int{0}                // their indices in parts
	scopes := []*scope{{prefix: "p"}}
	for {
		at := strings.IndexByte(html, '<')
		last := len(open) - 1
		if at < 0 {
			texts[last].WriteString(html)
			break
		}
		texts[last].WriteString(html[:at])
		html = html[at:]
		switch {
		case strings.HasPrefix(html, opening):
			var tag string
			tag, html, _ = strings.Cut(html[len(opening):], ">")
			in, id := scopes[last], ""
			if name, ok := strings.CutPrefix(tag, naming); ok {
				id = "p-" + strings.TrimSuffix(name, `"`)
				in = &scope{prefix: id + "-"}
			} else {
				in.n++
				id = in.prefix + strconv.Itoa(in.n)
			}
			fmt.Fprintf(texts[last], `<live-part id="%s"></live-part>`, id)
			parts, texts, open, scopes = append(parts, part{id: id}), append(texts, &strings.Builder{}), append(open, len(parts)), append(scopes, in)
		case strings.HasPrefix(html, closing) && last > 0:
			parts[open[last]].html = texts[last].String()
			texts, open, scopes = texts[:last], open[:last], scopes[:last]
			html = html[len(closing):]
		default:
			texts[last].WriteByte('<')
			html = html[1:]
		}
	}
	parts[0].html = texts[0].String()
	return parts
}

// Whole removes the marks of parts from a document.
func Whole(html string) string { return mark.ReplaceAllString(html, "") }

// events encodes parts.
func events(parts []part) []byte {
	var all []byte
	for _, p := range parts {
		for rest := p.html; ; {
			piece := rest[:fit(rest)]
			rest = rest[len(piece):]
			all = append(all, event("part", struct {
				ID   string `json:"id"`
				HTML string `json:"html"`
				More bool   `json:"more,omitempty"`
			}{p.id, piece, rest != ""})...)
			if rest == "" {
				break
			}
		}
	}
	return append(all, event("shown", struct{}{})...)
}

// event encodes an event with its data.
func event(name string, data any) []byte {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // no browser reads it as HTML, and escaping would make it half as long again
	_ = encoder.Encode(data)     // it ends the line; writing to a buffer cannot fail
	b.WriteByte('\n')
	return b.Bytes()
}

// fit returns the length of the longest beginning of a text that fits into an event, in which JSON writes characters as up to 6 bytes each.
func fit(text string) int {
	left := MaxEvent - 100 // room for the rest of the event
	for i, r := range text {
		size := utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError, r < ' ', r == '\u2028', r == '\u2029':
			size = 6
		case r == '"', r == '\\':
			size = 2
		}
		if left -= size; left < 0 {
			return i
		}
	}
	return len(text)
}
