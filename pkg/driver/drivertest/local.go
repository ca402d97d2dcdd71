package drivertest

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// local checks a driver of files: what its sessions store is visible to a later reader, and no file stays behind.
func (s *Suite) local(t *testing.T, d localfile.Driver) {
	site := localfile.Site{Root: t.TempDir(), Name: "conformance", To: 2, Sessions: 2, Epoch: 1, Fresh: true, Value: driver.Value{Size: localfile.StampSize}, Keys: 4, Memory: func() int64 { return 1 << 30 }}
	for phase := range uint64(2) {
		site.Epoch, site.Fresh = phase+1, phase == 0
		store, err := d.Open(t.Context(), s.Config, site)
		require.NoError(t, err)
		for i := range site.To {
			s.localSession(t, d, store, i)
		}
		_, err = store.Session(site.To)
		require.Error(t, err, "a session of another worker")
		log := store.Log()
		require.Empty(t, log.Failure)
		require.NotEmpty(t, log.SyncUsed)
		claim, err := store.Close()
		require.NoError(t, err)
		proof, err := d.Verify(claim)
		require.NoError(t, err)
		require.Empty(t, proof.Wrong)
		require.Equal(t, proof.Acknowledged, proof.Verified)
		if phase == 1 {
			require.NoError(t, store.Remove())
		}
	}
	left, err := os.ReadDir(site.Root)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = d.Verify([]byte("no claim"))
	require.Error(t, err)
}

// localSession has a session carry out each verb that the target takes.
func (s *Suite) localSession(t *testing.T, d localfile.Driver, store localfile.Store, i int) {
	session, err := store.Session(i)
	require.NoError(t, err)
	for v := range driver.Verb(driver.NumVerbs) {
		if d.Outcomes(v) == nil || d.Check(s.Config, v) != nil {
			continue
		}
		for n := range uint64(20) {
			req, reply := driver.Request{Verb: v, N: n, Index: n % 4, Key: fmt.Appendf(nil, "key:%d", n%4)}, driver.Reply{}
			if v.Stores() {
				req.Value = &driver.Value{}
			}
			require.NoError(t, session.Prepare(&req))
			require.NoError(t, session.Do(&req, &reply))
			s.declared(t, v, reply)
		}
	}
}

// overStore returns an executor for a session in its own store, for a driver that stores values by key.
func (s *Suite) overStore(t testing.TB, d localfile.Driver) Executor {
	site := localfile.Site{Root: t.TempDir(), Name: "conformance", To: 1, Sessions: 1, Epoch: 1, Fresh: true, Keys: 4, Memory: func() int64 { return 1 << 30 }}
	store, err := d.Open(t.Context(), s.Config, site)
	require.NoError(t, err)
	t.Cleanup(func() {
		claim, err := store.Close()
		require.NoError(t, err)
		proof, err := d.Verify(claim)
		require.NoError(t, err)
		require.Empty(t, proof.Wrong)
		require.NoError(t, store.Remove())
	})
	session, err := store.Session(0)
	require.NoError(t, err)
	return overStore{session}
}

type overStore struct{ session localfile.Session }

func (x overStore) Do(t testing.TB, reqs ...driver.Request) []driver.Reply {
	replies := make([]driver.Reply, len(reqs))
	for i := range reqs {
		require.NoError(t, x.session.Prepare(&reqs[i]))
		require.NoError(t, x.session.Do(&reqs[i], &replies[i]))
		replies[i].Value = bytes.Clone(replies[i].Value)
	}
	return replies
}
