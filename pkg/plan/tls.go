package plan

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TLS says how connections to a target are encrypted. Its files are PEM and are read where the load runs.
type TLS struct {
	CA         string `json:"ca"`                 // path of the CA certificates to trust; "" for the system's
	Cert       string `json:"cert"`               // path of the client's certificate chain; "" for none
	Key        string `json:"key"`                // path of the client's private key; "" without Cert
	ServerName string `json:"server_name"`        // name that the server's certificate must have; "" for the endpoint's host
	Insecure   bool   `json:"insecure,omitempty"` // the server's certificate is not verified
}

// tls reads how connections are encrypted.
func (b *block) tls() *TLS {
	s := new(TLS)
	b.Expect([]string{"ca", "cert", "key", "server_name", "insecure"}, nil)
	b.Text("ca", &s.CA)
	b.Text("cert", &s.Cert)
	b.Text("key", &s.Key)
	b.Text("server_name", &s.ServerName)
	b.Flag("insecure", &s.Insecure)
	return s
}

// tls checks how connections are encrypted. It does not read the files, which are where the load runs.
func (v *validator) tls(t *Target, d driver.Driver, at part) {
	if !connects(d) {
		v.fault(fmt.Sprintf("%s: driver %q has no connection to encrypt", at.where, t.Driver), "Leave tls out.", at.path)
	}
	if _, own := d.(driver.Encrypter); own {
		v.fault(fmt.Sprintf("%s: driver %q begins TLS in a way of its own", at.where, t.Driver), "Leave tls out: an argument of the target says so.", at.path)
	}
	if t.Builtin != nil {
		v.fault(at.where+": built-in nodes do not speak TLS", `Write endpoints = ["HOST:PORT"], or leave tls out.`, at.path)
	}
	if i := slices.IndexFunc(t.Endpoints, func(e string) bool { return strings.HasPrefix(e, "unix://") }); i >= 0 {
		v.fault(fmt.Sprintf("%s: endpoint %s is a Unix socket, over which servers speak no TLS", at.where, dialect.Quote(t.Endpoints[i])), "Leave tls out: what goes through it stays in this machine.", at.path)
	}
	if (t.TLS.Cert == "") != (t.TLS.Key == "") {
		v.fault(at.where+": cert and key belong together", "Write both paths: a client shows its certificate and proves that it has the key.",
			at.path+".cert", at.path+".key")
	}
	if t.TLS.Insecure && t.TLS.CA != "" {
		v.fault(at.where+": ca, and insecure = true, which verifies nothing", "Leave one of them out.", at.path+".insecure", at.path+".ca")
	}
	name := t.TLS.ServerName
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }
	if len(name) > 253 || net.ParseIP(name) == nil && strings.ContainsFunc(name, odd) {
		v.fault(fmt.Sprintf("%s: server_name = %s is not the name of a host", at.where, dialect.Quote(name)),
			`Write the name that stands in the server's certificate, without a port: "cache.example.org".`, at.path+".server_name")
	}
}
