package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	every      = time.Second     // counts change once a second
	within     = 5 * time.Second // time limit of a push, with its retries
	lastWithin = 3 * time.Second // time limit of the last push, which the end of a run waits for
)

// Job is the value of the label job, that of a scraped coordinator in deploy/prometheus.yml.
const Job = "loadgen"

// Pusher sends what a registry shows once a second, and a last time when it is closed.
type Pusher struct {
	to   *Receiver
	from prometheus.Gatherer
	note func(string)
	http *sender

	at           int64        // of the last push, in milliseconds since 1970
	sent, failed int          // pushes in all, and those that did not arrive
	said         map[int]bool // statuses that were noted; each is noted once, so that a run has few notes
	down         bool         // a failure was noted, and the recovery was not yet

	cancel context.CancelFunc
	done   chan struct{} // closed when only Close still sends
}

// Start begins to push. The caller must call Close. note is called with a sentence when pushes begin to fail, when the reason changes, and when they
// arrive again. It is called from one goroutine at a time.
func Start(to *Receiver, from prometheus.Gatherer, note func(string)) *Pusher {
	p := &Pusher{to: to, from: from, note: note, http: newSender(to), said: map[int]bool{}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background()) // until Close
	p.cancel = cancel
	go func() { // ends with Close, which waits for it
		defer close(p.done)
		p.regularly(ctx)
	}()
	return p
}

// regularly pushes until ctx ends.
func (p *Pusher) regularly(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := p.push(ctx, within); ctx.Err() == nil {
			p.tell(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Close pushes a last time, for a few seconds at most and no longer than ctx, and ends the pusher.
func (p *Pusher) Close(ctx context.Context) {
	p.cancel()
	<-p.done
	err := p.push(ctx, lastWithin)
	p.http.http.CloseIdleConnections()
	switch {
	case err != nil:
		p.note(fmt.Sprintf("the last figures did not reach %s: %v; the result has them all", p.to, err))
	case p.failed > 0:
		p.note(fmt.Sprintf("%d of %d pushes did not reach %s; the last one did, with all counts", p.failed, p.sent+1, p.to))
	}
}

// tell counts a push. It notes the first failure of each kind, and the first push that arrives after one.
func (p *Pusher) tell(err error) {
	p.sent++
	if err == nil {
		if p.down {
			p.note(fmt.Sprintf("%s accepts figures again", p.to))
		}
		p.down = false
		return
	}
	p.failed++
	if !p.said[p.http.status] {
		p.said[p.http.status], p.down = true, true
		p.note(fmt.Sprintf("%s does not accept the figures: %v; the run goes on, and pushes are tried again", p.to, err))
	}
}

// push sends what the registry shows now.
func (p *Pusher) push(ctx context.Context, within time.Duration) error {
	api, err := p.http.api()
	if err != nil {
		return err
	}
	families, err := p.from.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p.at = max(p.at+1, time.Now().UnixMilli()) // a receiver takes one value of a series for each millisecond
	for _, m := range encode(families, Job, p.at) {
		var before error // why the push was retried
		if _, err := api.Write(ctx, remote.WriteV1MessageType, m, remote.WithWriteRetryCallback(func(err error) { before = err })); err != nil {
			if ctx.Err() != nil {
				err = cmp.Or(before, errors.New("no answer in time"))
			}
			return p.why(err)
		}
	}
	return nil
}

// hints say what to do about a receiver's refusals.
var hints = map[int]string{
	http.StatusUnauthorized:          "it needs a token, or another one: --remote-write-token-file",
	http.StatusForbidden:             "it does not let this token, or tenant, write",
	http.StatusNotFound:              "it receives elsewhere, or not at all: Prometheus does at /api/v1/write, with --web.enable-remote-write-receiver",
	http.StatusMethodNotAllowed:      "it receives elsewhere: Prometheus does at /api/v1/write",
	http.StatusRequestEntityTooLarge: fmt.Sprintf("raise its limit; a request has at most %d series", maxSeries),
	http.StatusTooManyRequests:       "pushes were tried again until the time was up; raise its limit",
}

// why puts an error into words. URLs stay out of it, since a query may be secret.
func (p *Pusher) why(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	text := strings.TrimRight(strings.TrimPrefix(err.Error(), "server returned HTTP status "), ": \r\n")
	if hint := hints[p.http.status]; hint != "" {
		text += " (" + hint + ")"
	}
	return errors.New(text)
}
