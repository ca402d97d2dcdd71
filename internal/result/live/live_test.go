package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/live"
	"github.com/loadgen/loadgen/internal/servertest"
)

// browser is a client of a stream. Its writes wait while it is slow.
type browser struct {
	*httptest.ResponseRecorder
	slow chan struct{} // closed: it reads; nil: likewise
	gone <-chan struct{}
}

func (b *browser) SetReadDeadline(time.Time) error  { return nil }
func (b *browser) SetWriteDeadline(time.Time) error { return nil }

func (b *browser) Write(p []byte) (int, error) {
	if b.slow != nil && strings.Contains(string(p), "event:") {
		select {
		case <-b.slow:
		case <-b.gone:
			return 0, errors.New("gone")
		}
	}
	return b.ResponseRecorder.Write(p)
}

// visit opens the stream. wait returns once it has ended.
func visit(ctx context.Context, f *live.Feed, slow chan struct{}) (b *browser, wait func()) {
	b = &browser{httptest.NewRecorder(), slow, ctx.Done()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.ServeHTTP(b, httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil))
	}()
	return b, func() { <-done }
}

// shown puts together what a browser was sent, and checks that no event is too large.
func shown(t *testing.T, stream string) (parts map[string]string, sent []string, ended bool) {
	t.Helper()
	parts = map[string]string{}
	open := ""
	for event := range strings.SplitSeq(stream, "\n\n") {
		require.LessOrEqual(t, len(event), live.MaxEvent)
		name, data, ok := strings.Cut(event, "\ndata: ")
		ended = ended || name == "event: end"
		if !ok || name != "event: part" {
			continue
		}
		var p struct {
			ID, HTML string
			More     bool
		}
		require.NoError(t, json.Unmarshal([]byte(data), &p))
		if open += p.HTML; !p.More {
			parts[p.ID], open = open, ""
			sent = append(sent, p.ID)
		}
	}
	return parts, sent, ended
}

func says(html string) func() (string, error) { return func() (string, error) { return html, nil } }

func TestWatchersAreSentWhatHasChanged(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		f := live.New(func(*http.Request) {})
		require.False(t, f.Due(), "nobody watches")
		first, ended := visit(t.Context(), f, nil)
		synctest.Wait()
		require.True(t, f.Due())
		long := strings.Repeat(`<b class="ü">"</b>`, 5000)
		page := func(first, text string) string {
			return "<main>" + first + "<live-part of=\"x\">a<live-part>" + text + "</live-part></live-part><live-part>" + long + "</live-part></main>"
		}
		require.Equal(t, "<main>ab"+long+"</main>", live.Whole(page("", "b")))
		f.Show(says(page("", "b")))
		synctest.Wait()
		late, lateEnded := visit(t.Context(), f, nil)
		synctest.Wait()
		f.Close(page(`<live-part of="new">d</live-part>`, "c"), false)
		ended()
		lateEnded()

		want := map[string]string{
			"":      `<main><live-part id="p-new"></live-part><live-part id="p-x"></live-part><live-part id="p1"></live-part></main>`,
			"p-new": "d", "p-x": `a<live-part id="p-x-1"></live-part>`, "p-x-1": "c", "p1": long,
		}
		for _, b := range []*browser{first, late} {
			parts, sent, over := shown(t, b.Body.String())
			require.Equal(t, want, parts)
			require.Equal(t, []string{"", "p-x", "p-x-1", "p1", "", "p-new", "p-x-1"}, sent)
			require.True(t, over)
		}
		after, wait := visit(t.Context(), f, nil)
		wait()
		parts, _, over := shown(t, after.Body.String())
		require.Equal(t, want, parts, "whoever comes after the end is shown the last")
		require.True(t, over)
	})
}

func TestRenderingTakesAFiftiethOfTheTime(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		f := live.New(func(*http.Request) {})
		ctx, leave := context.WithCancel(t.Context())
		_, ended := visit(ctx, f, nil)
		synctest.Wait()
		f.Show(func() (string, error) {
			time.Sleep(20 * time.Millisecond)
			return "x", nil
		})
		time.Sleep(19 * time.Millisecond)
		require.False(t, f.Due(), "it is still being rendered")
		time.Sleep(time.Second)
		require.False(t, f.Due())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.True(t, f.Due())
		leave()
		ended()
		require.False(t, f.Due(), "nobody watches any more")
		f.Close("", false)
	})
}

func TestSlowWatchersAreDropped(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		f := live.New(func(*http.Request) {})
		slow := make(chan struct{})
		_, dropped := visit(t.Context(), f, slow)
		quick, ended := visit(t.Context(), f, nil)
		synctest.Wait()
		for _, text := range []string{"1", "2", "3", "4", "5", "6"} {
			f.Show(says(text))
			synctest.Wait()
		}
		close(slow)
		dropped()
		require.True(t, f.Watched())
		f.Close("", true)
		ended()
		require.Contains(t, quick.Body.String(), "event: end\ndata: {\"another\":true}\n\n")
		_, sent, _ := shown(t, quick.Body.String())
		require.Len(t, sent, 6)
	})
}

func TestWatchersAreBounded(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		welcome := 0
		f := live.New(func(*http.Request) { welcome++ })
		ctx, leave := context.WithCancel(t.Context())
		var all []func()
		for range live.MaxWatchers {
			_, ended := visit(ctx, f, nil)
			all = append(all, ended)
			synctest.Wait()
		}
		for range 1000 - live.MaxWatchers {
			b, refused := visit(t.Context(), f, nil)
			refused()
			require.Equal(t, http.StatusServiceUnavailable, b.Code)
			require.Equal(t, "256 browsers watch already, the most that may: come back later\n", b.Body.String())
		}
		require.Equal(t, live.MaxWatchers, welcome)
		leave()
		for _, ended := range all {
			ended()
		}
		f.Close("", false)
	})
}
