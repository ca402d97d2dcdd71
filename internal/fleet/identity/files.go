package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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

// reread holds what was read from files. It reads them again when one has changed, and keeps the old until the new is usable.
type reread[T any] struct {
	paths []string
	read  func() (T, error)

	mu     sync.Mutex
	stamps []stamp // of what is held
	held   T
}

// stamp shows whether a file was replaced or has changed.
type stamp struct {
	size     int64
	modified time.Time
	inode    uint64
}

// now returns what is held, and why the files cannot be used as they are now.
func (r *reread[T]) now() (held T, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamps := make([]stamp, len(r.paths))
	for i, path := range r.paths {
		info, err := os.Stat(path)
		if err != nil {
			return r.held, err
		}
		stamps[i] = stamp{size: info.Size(), modified: info.ModTime()}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			stamps[i].inode = s.Ino
		}
	}
	if slices.Equal(stamps, r.stamps) {
		return r.held, nil
	}
	made, err := r.read()
	if err == nil {
		r.held, r.stamps = made, stamps
	}
	return r.held, err
}

// filed holds the certificates in Files.
type filed struct {
	files Files
	role  Role
	host  string // the host that the coordinator's certificate must name, unless it has a SPIFFE ID
	keys  reread[filedKeys]
}

// filedKeys is what Files hold.
type filedKeys struct {
	cert *tls.Certificate
	pool *x509.CertPool
}

func openFiles(files Files, role Role, host string) (*filed, error) {
	if err := files.check(); err != nil {
		return nil, err
	}
	f := &filed{files: files, role: role, host: host}
	f.keys.paths, f.keys.read = []string{files.CA, files.Cert, files.Key}, f.read
	_, err := f.keys.now()
	return f, err
}

func (f *filed) own() (*tls.Certificate, error) {
	held, failed := f.keys.now()
	if until := held.cert.Leaf.NotAfter; time.Now().After(until) {
		return nil, errors.Join(fmt.Errorf("the certificate in %s expired at %s", f.files.Cert, until.Format(time.RFC3339)), failed)
	}
	return held.cert, nil
}

func (f *filed) roots() (*x509.CertPool, error) {
	held, _ := f.keys.now() // own says what is wrong with the files
	return held.pool, nil
}

func (f *filed) read() (keys filedKeys, err error) {
	ca, err := readPEM(f.files.CA, "")
	if err != nil {
		return keys, err
	}
	cert, err := readPair(f.files.Cert, "--tls-cert", f.files.Key, "--tls-key")
	if err != nil {
		return keys, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return keys, fmt.Errorf("--tls-ca %s: it holds no certificate in PEM", f.files.CA)
	}
	if _, err := roleIn(cert.Leaf, f.role); err != nil {
		return keys, fmt.Errorf("--tls-cert %s: %w", f.files.Cert, err)
	}
	return filedKeys{cert, pool}, nil
}

// readPair reads a certificate and its key from files that flags name.
func readPair(certFile, certFlag, keyFile, keyFlag string) (*tls.Certificate, error) {
	cert, err := readPEM(certFile, "")
	if err != nil {
		return nil, err
	}
	key, err := readPEM(keyFile, keyFlag)
	if err != nil {
		return nil, err
	}
	made, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s %s, %s %s: %w", certFlag, certFile, keyFlag, keyFile, err)
	}
	return &made, nil
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
