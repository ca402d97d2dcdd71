package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const maxPEMFile = 1 << 20

// Files are the PEM files of certificates from the user's own PKI. Either all are given or none.
type Files struct {
	CA   string // certificates that certify the other end
	Cert string // this end's certificate, and any between it and its CA
	Key  string // its key
}

// IsZero says whether none is given.
func (f Files) IsZero() bool { return f == Files{} }

func (f Files) check() error {
	if f.CA == "" || f.Cert == "" || f.Key == "" {
		return errors.New("--tls-ca, --tls-cert and --tls-key belong together: give all three")
	}
	return nil
}

// filed holds certificates read from files. It reads them again when a file has changed, and keeps the old ones until the new ones are usable.
type filed struct {
	files Files
	role  Role
	host  string // the host that the coordinator's certificate must name, unless it has a SPIFFE ID

	mu     sync.Mutex
	stamps [3]stamp
	cert   *tls.Certificate
	pool   *x509.CertPool
	failed error // why the files cannot be used as they are now
}

// stamp shows whether a file was replaced or has changed.
type stamp struct {
	size     int64
	modified time.Time
	inode    uint64
}

func openFiles(files Files, role Role, host string) (*filed, error) {
	if err := files.check(); err != nil {
		return nil, err
	}
	f := &filed{files: files, role: role, host: host}
	if f.refresh(); f.failed != nil {
		return nil, f.failed
	}
	return f, nil
}

func (f *filed) own() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	if time.Now().After(f.cert.Leaf.NotAfter) {
		return nil, errors.Join(fmt.Errorf("the certificate in %s expired at %s", f.files.Cert, f.cert.Leaf.NotAfter.Format(time.RFC3339)), f.failed)
	}
	return f.cert, nil
}

func (f *filed) roots() (*x509.CertPool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.pool, nil
}

// refresh reads the files again if one of them has changed.
func (f *filed) refresh() {
	var now [3]stamp
	for i, path := range f.paths() {
		info, err := os.Stat(path)
		if err != nil {
			f.failed = err
			return
		}
		now[i] = stamp{size: info.Size(), modified: info.ModTime()}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			now[i].inode = s.Ino
		}
	}
	if now == f.stamps {
		return
	}
	cert, pool, err := f.read()
	if f.failed = err; err == nil {
		f.cert, f.pool, f.stamps = cert, pool, now
	}
}

func (f *filed) paths() [3]string { return [3]string{f.files.CA, f.files.Cert, f.files.Key} }

func (f *filed) read() (*tls.Certificate, *x509.CertPool, error) {
	var texts [3][]byte
	for i, path := range f.paths() {
		var err error
		if texts[i], err = readPEM(path, map[string]string{f.files.Key: "--tls-key"}[path]); err != nil {
			return nil, nil, err
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(texts[0]) {
		return nil, nil, fmt.Errorf("--tls-ca %s: it holds no certificate in PEM", f.files.CA)
	}
	cert, err := tls.X509KeyPair(texts[1], texts[2])
	if err != nil {
		return nil, nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.files.Cert, f.files.Key, err)
	}
	if _, err := roleIn(cert.Leaf, f.role); err != nil {
		return nil, nil, fmt.Errorf("--tls-cert %s: %w", f.files.Cert, err)
	}
	return &cert, pool, nil
}

// readPEM reads a regular file, named by flag. Nobody else may be able to read a key, except that a key of root may be group-readable, as orchestrators
// mount secrets.
func readPEM(path, flag string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPEMFile {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxPEMFile)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if flag != "" && ok {
		open := info.Mode().Perm() & 0o077
		if owner.Uid == 0 && os.Geteuid() != 0 {
			open = info.Mode().Perm() & 0o037
		}
		switch {
		case int(owner.Uid) != os.Geteuid() && owner.Uid != 0:
			return nil, fmt.Errorf("%s %s belongs to user %d, not to you (%d)", flag, path, owner.Uid, os.Geteuid())
		case open != 0:
			return nil, fmt.Errorf("%s %s is open to others (mode %04o): chmod go= %[2]s", flag, path, info.Mode().Perm())
		}
	}
	return io.ReadAll(io.LimitReader(file, maxPEMFile))
}

// trusts makes a worker accept a coordinator with a SPIFFE ID in its own trust domain, or one whose certificate is for the host that the worker was
// given.
func (f *filed) trusts(cfg *tls.Config, roots *x509.CertPool) {
	cfg.ServerName = f.host
	cfg.InsecureSkipVerify = true // a SPIFFE ID replaces the host name; VerifyConnection verifies everything else
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		own, err := f.own()
		if err != nil {
			return err
		}
		return f.verify(s.PeerCertificates, own.Leaf, roots)
	}
}

func (f *filed) verify(shown []*x509.Certificate, own *x509.Certificate, roots *x509.CertPool) error {
	leaf, between := shown[0], poolOf(shown[1:]...)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		return err
	}
	id, err := roleIn(leaf, Coordinator)
	if err != nil {
		return err
	}
	if id.Scheme != spiffeScheme || trustDomain(own) == "" {
		return leaf.VerifyHostname(f.host)
	}
	return checkDomain(own, leaf)
}

func (f *filed) stranger() string {
	return fmt.Sprintf("what listens there shows a certificate that nobody in %s has signed: give both ends the CA that certifies the other as --tls-ca", f.files.CA)
}
