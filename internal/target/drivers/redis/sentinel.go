package redis

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Sentinel says that the endpoints are Sentinels, which know the master of the target.
type Sentinel struct {
	// Master is the name under which the Sentinels watch the master.
	Master string `hcl:"master" json:"master"`
	// Username is the Sentinels' ACL user; empty for the default user.
	Username string `hcl:"username,optional" json:"username,omitempty"`
	// Password authenticates with the Sentinels; nil if they need none.
	Password *driver.Secret `hcl:"password,optional" json:"password,omitempty"`
}

func (s *Sentinel) validate() (errs []error) {
	if s.Master == "" || len(s.Master) > maxName || strings.ContainsFunc(s.Master, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		errs = append(errs, fmt.Errorf("sentinel with master = %q: write the name that the Sentinels watch it by, as in their line: sentinel monitor NAME …", s.Master))
	}
	if s.Username != "" && s.Password == nil {
		errs = append(errs, errors.New(`sentinel with username, without password: write password = secret("NAME"), or leave username out`))
	}
	return errs
}

// The nodes that answer gets.
const (
	fromMaster  = "master"
	fromReplica = "replica"
)

// all are the slots of a master that is not part of a cluster.
var all = [][2]int{{0, lastSlot}}

// nodes asks a Sentinel for the master and its replicas. A Sentinel that has not heard of a failover yet has a lower epoch than the others.
func (s *Sentinel) nodes(in *asker) ([]driver.Node, error) {
	var request []byte
	for _, about := range []string{"GET-MASTER-ADDR-BY-NAME", "MASTER", "REPLICAS"} {
		request = AppendCommand(request, "SENTINEL", about, s.Master)
	}
	in.Say(request)
	at, err := in.texts()
	if err != nil {
		return nil, fmt.Errorf("SENTINEL GET-MASTER-ADDR-BY-NAME: %w", in.sentinel(err))
	}
	if len(at) != 2 {
		return nil, s.stranger(in)
	}
	facts, err := in.texts()
	if err != nil {
		return nil, fmt.Errorf("SENTINEL MASTER: %w", err)
	}
	epoch, err := strconv.ParseUint(named(facts, "config-epoch"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SENTINEL MASTER: config-epoch: %w", err)
	}
	master := driver.Node{Addr: net.JoinHostPort(at[0], at[1]), Slots: all, Epoch: epoch}
	head, err := in.value()
	switch {
	case err != nil:
		return nil, err
	case head.kind != array:
		return nil, fmt.Errorf("SENTINEL REPLICAS: want a list, server says %q", printable(head.text))
	}
	nodes := []driver.Node{master}
	for range head.elements() {
		facts, err := in.texts()
		if err != nil {
			return nil, fmt.Errorf("SENTINEL REPLICAS: %w", err)
		}
		n := driver.Node{Addr: net.JoinHostPort(named(facts, "ip"), named(facts, "port")), Epoch: epoch}
		if up := named(facts, "master-link-status") == "ok"; up && named(facts, "flags") == "slave" {
			n.Of = master.Addr
		}
		if n.Addr != master.Addr { // it has just been promoted to master
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// stranger returns the error for a Sentinel that watches no master of the name. The answers to the other two questions still have to be read.
func (s *Sentinel) stranger(in *asker) error {
	for range 2 {
		if _, err := in.value(); err != nil { // an error
			return err
		}
	}
	head, err := in.ask("SENTINEL", "MASTERS")
	if err != nil {
		return err
	}
	var names []string
	for range head.elements() {
		facts, err := in.texts()
		if err != nil {
			return err
		}
		names = append(names, strconv.Quote(printable([]byte(named(facts, "name")))))
	}
	if len(names) == 0 {
		return fmt.Errorf("the Sentinel watches no master: tell it to, by sentinel monitor %s HOST PORT QUORUM", s.Master)
	}
	slices.Sort(names)
	return fmt.Errorf("the Sentinel watches no master %q, but %s: write master = %s in sentinel", s.Master, strings.Join(names, ", "), names[0])
}

// sentinel explains the answer of a server that is not a Sentinel.
func (a *asker) sentinel(err error) error {
	if strings.Contains(err.Error(), "unknown command") {
		return errors.New("the server is no Sentinel: write the endpoints of Sentinels, whose port is usually 26379, or leave sentinel out of the target")
	}
	return err
}

// replicated asks a master for its replicas.
func replicated(in *asker) ([]driver.Node, error) {
	head, err := in.ask("ROLE")
	if err != nil {
		return nil, err
	}
	if head.kind != array {
		return nil, fmt.Errorf("ROLE: want a list, server says %q", printable(head.text))
	}
	role, err := in.value()
	if err != nil {
		return nil, err
	}
	if string(role.text) != "master" {
		return nil, fmt.Errorf("the server is not a master, but a %s: write its master's endpoint, which knows all replicas", printable(role.text))
	}
	if _, err = in.value(); err != nil { // the replication offset
		return nil, err
	}
	if head, err = in.value(); err != nil {
		return nil, err
	}
	master := driver.Node{Addr: in.Conn.RemoteAddr().String(), Slots: all}
	nodes := []driver.Node{master}
	for range head.elements() {
		at, err := in.texts()
		if err != nil || len(at) < 2 {
			return nil, fmt.Errorf("ROLE: its replicas: %w", errors.Join(err, errors.New("want host, port and offset of each")))
		}
		nodes = append(nodes, driver.Node{Addr: net.JoinHostPort(at[0], at[1]), Of: master.Addr})
	}
	if len(nodes) == 1 {
		return nil, errors.New(`the server has no replicas: start some, or write read = "master"`)
	}
	return nodes, nil
}

// texts reads an array of texts; none if it is null.
func (a *asker) texts() (list []string, err error) {
	head, err := a.value()
	switch {
	case err != nil:
		return nil, err
	case head.kind == errorReply:
		return nil, fmt.Errorf("server says %s", printable(head.text))
	case head.missing():
		return nil, nil
	case !head.aggregate():
		return nil, errors.New("want a list")
	}
	for range head.elements() {
		v, err := a.value()
		if err != nil {
			return nil, err
		}
		list = append(list, string(v.text))
	}
	return list, nil
}

// named returns the value of a name in a list of names and values; "" if the name is not there.
func named(list []string, name string) string {
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == name {
			return list[i+1]
		}
	}
	return ""
}
