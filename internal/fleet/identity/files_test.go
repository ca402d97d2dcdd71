package identity

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pki is an organisation's own PKI, which certifies whatever it is asked to.
type pki struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	p := &pki{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an organisation"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, p.key.Public(), p.key)
	require.NoError(t, err)
	p.root, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return p
}

// files writes a certificate for a URI, which also has the loopback's names unless it is for elsewhere.
func (p *pki) files(uri string, change ...func(*x509.Certificate)) Files {
	p.t.Helper()
	dir := p.t.TempDir()
	f := Files{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	p.write(f, uri, change...)
	return f
}

func (p *pki) write(f Files, uri string, change ...func(*x509.Certificate)) {
	p.t.Helper()
	role, err := url.Parse(uri)
	require.NoError(p.t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(p.t, err)
	template := &x509.Certificate{
		SerialNumber: serial, URIs: []*url.URL{role}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, c := range change {
		c(template)
	}
	key := newKey(p.t)
	der, err := x509.CreateCertificate(rand.Reader, template, p.root, key.Public(), p.key)
	require.NoError(p.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(p.t, err)
	for path, block := range map[string]*pem.Block{
		f.CA: {Type: certBlock, Bytes: p.root.Raw}, f.Cert: {Type: certBlock, Bytes: der}, f.Key: {Type: keyBlock, Bytes: secret},
	} {
		require.NoError(p.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
}

// shake lets a worker and a coordinator, each with files, meet at a loopback address, and returns each end's outcome.
func shake(t *testing.T, worker, coordinator Place) (ofWorker, ofCoordinator error) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer lis.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := lis.Accept()
		if err == nil {
			proof, _ := coordinator.Prove(Coordinator)
			_, _, err = Handshake(proof).ServerHandshake(conn)
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", lis.Addr().String())
	require.NoError(t, err)
	proof, err := worker.Prove(Worker)
	require.NoError(t, err)
	_, _, ofWorker = Handshake(proof).ClientHandshake(t.Context(), "", conn)
	if ofWorker != nil {
		_ = conn.Close()
	}
	ofCoordinator = <-done
	_ = conn.Close()
	return ofWorker, ofCoordinator
}

const (
	workerURI       = "loadgen://role/worker"
	coordinatorURI  = "loadgen://role/coordinator"
	workerSVID      = "spiffe://example.org/ns/load/loadgen/worker"
	coordinatorSVID = "spiffe://example.org/ns/load/loadgen/coordinator"
)

func elsewhere(c *x509.Certificate) {
	c.IPAddresses, c.DNSNames = nil, []string{"elsewhere.example.org"}
}

// TestCertificatesOfAnOwnPKI: who accepts whom, and what the refusals say.
func TestCertificatesOfAnOwnPKI(t *testing.T) {
	own, other := newPKI(t), newPKI(t)
	for name, c := range map[string]struct {
		worker, coordinator Files
		ofWorker, ofCoord   string
	}{
		"roles":                       {own.files(workerURI), own.files(coordinatorURI), "", ""},
		"SPIFFE IDs":                  {own.files(workerSVID), own.files(coordinatorSVID), "", ""},
		"SPIFFE IDs name no host":     {own.files(workerSVID), own.files(coordinatorSVID, elsewhere), "", ""},
		"roles are of a host":         {own.files(workerURI), own.files(coordinatorURI, elsewhere), "127.0.0.1", "remote error"},
		"another trust domain":        {own.files("spiffe://example.net/loadgen/worker"), own.files(coordinatorSVID), "trust domain", "remote error"},
		"another CA's coordinator":    {own.files(workerURI), other.files(coordinatorURI), "nobody in ", "remote error"},
		"certificate for no server":   {own.files(workerURI), own.files(coordinatorURI, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), "incompatible key usage", ""},
		"certificate for no client":   {own.files(workerURI, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }), own.files(coordinatorURI), "the coordinator refuses this worker: its certificate: x509: certificate specifies an incompatible key usage", "incompatible key usage"},
		"worker of another authority": {mixed(own, other.files(workerURI)), own.files(coordinatorURI), "the coordinator refuses this worker: its certificate is of an authority that is unknown here", "join with a token"},
	} {
		t.Run(name, func(t *testing.T) {
			worker, err := Means{Dir: t.TempDir(), TLS: c.worker}.JoinAt("127.0.0.1:7464")
			require.NoError(t, err)
			coordinator, err := Means{Dir: t.TempDir(), TLS: c.coordinator}.ListenAt("127.0.0.1:7464")
			require.NoError(t, err)
			ofWorker, ofCoord := shake(t, worker, coordinator)
			if c.ofWorker != "" {
				require.ErrorContains(t, ofWorker, c.ofWorker)
			}
			if c.ofCoord != "" {
				require.ErrorContains(t, ofCoord, c.ofCoord)
			}
			if c.ofWorker == "" && c.ofCoord == "" {
				require.NoError(t, errors.Join(ofWorker, ofCoord))
			}
		})
	}
}

// TestExpiredFileSaysSo on the side that has the expired certificate.
func TestExpiredFileSaysSo(t *testing.T) {
	files := newPKI(t).files(coordinatorURI, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	f, err := openFiles(files, Coordinator, "")
	require.NoError(t, err)
	_, err = f.own()
	require.ErrorContains(t, err, "the certificate in "+files.Cert+" expired at")
}

// mixed are files whose CA is that of another PKI.
func mixed(p *pki, f Files) Files {
	f.CA = p.files(workerURI).CA
	return f
}

// TestFilesAreChecked before anything is opened.
func TestFilesAreChecked(t *testing.T) {
	p := newPKI(t)
	good := p.files(workerURI)
	for name, c := range map[string]struct {
		files func() Files
		says  string
	}{
		"one is missing":    {func() Files { return Files{CA: good.CA, Cert: good.Cert} }, "give all three"},
		"role of the other": {func() Files { return p.files(coordinatorURI) }, `"loadgen://role/coordinator"`},
		"no role":           {func() Files { return p.files("https://example.org") }, "loadgen://role/worker or spiffe://TRUST-DOMAIN/"},
		"ends otherwise":    {func() Files { return p.files("spiffe://example.org/myloadgen/worker2") }, "spiffe://TRUST-DOMAIN/"},
		"without a domain":  {func() Files { return p.files("spiffe:///loadgen/worker") }, "spiffe://TRUST-DOMAIN/"},
		"key of another":    {func() Files { return Files{good.CA, good.Cert, p.files(workerURI).Key} }, "private key does not match"},
		"open key": {func() Files {
			f := p.files(workerURI)
			require.NoError(t, os.Chmod(f.Key, 0o644))
			return f
		}, "is open to others (mode 0644): chmod go= "},
		"no CA":     {func() Files { return Files{good.Key, good.Cert, good.Key} }, "holds no certificate in PEM"},
		"no file":   {func() Files { return Files{good.CA, good.Cert + "x", good.Key} }, "no such file"},
		"directory": {func() Files { return Files{t.TempDir(), good.Cert, good.Key} }, "is not a regular file"},
	} {
		_, err := Means{Dir: t.TempDir(), TLS: c.files()}.JoinAt("127.0.0.1:7464")
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := Means{Dir: t.TempDir(), TLS: good}.JoinAt("socket:x")
	require.ErrorContains(t, err, "neither tokens nor certificates are needed")
	_, err = Means{Dir: t.TempDir(), TLS: good, Token: new(Token)}.JoinAt("127.0.0.1:1")
	require.ErrorContains(t, err, "use one of them")
}

// TestFilesAreReadAgain when they have changed; a file that is not yet usable is ignored.
func TestFilesAreReadAgain(t *testing.T) {
	p := newPKI(t)
	files := p.files(workerURI)
	f, err := openFiles(files, Worker, "127.0.0.1")
	require.NoError(t, err)
	first, err := f.own()
	require.NoError(t, err)
	again, err := f.own()
	require.NoError(t, err)
	require.Same(t, first, again)
	p.write(files, workerURI)
	second, err := f.own()
	require.NoError(t, err)
	require.False(t, first.Leaf.Equal(second.Leaf))
	half := p.files(workerURI)
	text, err := os.ReadFile(half.Cert)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files.Cert, append(text, '\n'), 0o600)) // its key is still to come
	kept, err := f.own()
	require.NoError(t, err)
	require.Same(t, second, kept)
	key, err := os.ReadFile(half.Key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	third, err := f.own()
	require.NoError(t, err)
	require.False(t, third.Leaf.Equal(second.Leaf))
	fresh := newPKI(t)
	fresh.write(files, workerURI)
	pool, err := f.roots()
	require.NoError(t, err)
	require.True(t, pool.Equal(poolOf(fresh.root)))
}
