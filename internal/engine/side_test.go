package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A server that says nothing of itself has one fact if its connections are encrypted: how.
func TestServersOfWhichOnlyTheEncryptionIsKnown(t *testing.T) {
	a := servertest.NewAuthority(t)
	shows := a.Issue("127.0.0.1", time.Hour)
	for _, d := range []driver.Driver{nameless{}, struct{ driver.Wire }{ticket.Driver{}}} {
		facts, err := identified(t, d, ticketsAt(t, &shows), &plan.TLS{CA: a.CA})
		require.NoError(t, err)
		require.Len(t, facts, 1)
		require.Contains(t, facts["tls"], "TLS 1.3")
	}
}
