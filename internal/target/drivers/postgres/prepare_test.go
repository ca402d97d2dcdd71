package postgres

import (
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// answering is a connection to a server that lets everybody in and answers each query with the same rows.
func answering(t *testing.T, rows ...[][]byte) net.Conn {
	conn, far := net.Pipe()
	t.Cleanup(func() { _ = conn.Close() })
	for _, end := range []net.Conn{conn, far} {
		require.NoError(t, end.SetDeadline(time.Now().Add(20*time.Second)))
	}
	go func() {
		defer far.Close()
		server := pgproto3.NewBackend(far, far)
		for first, err := server.ReceiveStartupMessage(); ; first, err = server.ReceiveStartupMessage() {
			if err != nil {
				return
			}
			if _, encrypted := first.(*pgproto3.SSLRequest); !encrypted {
				break
			}
			if _, err := far.Write([]byte("N")); err != nil {
				return
			}
		}
		server.Send(&pgproto3.AuthenticationOk{})
		for {
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			if server.Flush() != nil {
				return
			}
			if _, err := server.Receive(); err != nil {
				return
			}
			server.Send(&pgproto3.RowDescription{})
			for _, row := range rows {
				server.Send(&pgproto3.DataRow{Values: row})
			}
			server.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT")})
		}
	}()
	return conn
}

// A server that leaves out rows, or columns of them, is no PostgreSQL: its table is neither made nor dropped.
func TestServersThatLeaveOutRows(t *testing.T) {
	l := link(nil)
	for what, ask := range map[string]func(net.Conn) error{
		"make table": func(conn net.Conn) error { return Driver{}.Prepare(t.Context(), conn, l) },
		"drop table": func(conn net.Conn) error { return Driver{}.CleanUp(t.Context(), conn, l) },
	} {
		require.EqualError(t, ask(answering(t)), what+" loadgen_values: the server answers without a row where PostgreSQL has one")
		require.EqualError(t, ask(answering(t, [][]byte{})), what+" loadgen_values: the server answers with a row without columns")
	}
	for _, rows := range [][][][]byte{nil, {{[]byte("max_connections")}}, {{}}} {
		facts, err := Driver{}.Identify(t.Context(), answering(t, rows...), l)
		require.NoError(t, err)
		delete(facts, driver.Note)
		delete(facts, "instance") // the script answers every question alike
		require.Equal(t, map[string]string{"server": "postgres", "version": ""}, facts)
	}
}
