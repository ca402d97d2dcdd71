package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/servertest"
)

// A guest is a virtual machine of QEMU. Either it has persistent memory that is a file of the host, so that what it writes there outlives it, or it
// is on a [Network] and has its own time of day. It boots the kernel of Debian's package linux-image-cloud-amd64, which is unpacked and not
// installed. Nothing measured in it is a result: its processor is emulated.

const (
	// pmemSize is the size of a guest's persistent memory in bytes: XFS needs at least 300 MiB.
	pmemSize = 320 << 20
	// pmemStart is the offset of the data in the file of a namespace of mode fsdax: they follow the info block and the place of the descriptors of its
	// pages, which are kept in the guest's RAM.
	pmemStart = 2 << 20
	// bootTimeout is how long a guest may live.
	bootTimeout = 8 * time.Minute
)

// modules are the kernel modules that a guest loads, in this order.
var modules = [...]string{
	"libnvdimm", "nd_btt", "nfit", "nd_pmem", "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
	"nd_virtio", "virtio_pmem", "libcrc32c", "xfs", "failover", "net_failover", "virtio_net",
}

// Guests boots guests of one kind.
type Guests struct {
	t      testing.TB
	dir    string
	kernel string
	files  []byte // the archive of the root file system
}

// guestKernel returns the directory into which make test-servers unpacks the kernel's package.
func guestKernel() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "loadgen-guest", "kernel"), err
}

// NewGuests prepares guests that have the given files, by their paths in the guest.
func NewGuests(t testing.TB, files map[string]string) *Guests {
	t.Helper()
	kernel, root, err := guestParts()
	servertest.Require(t, "qemu", err)
	g := &Guests{t: t, dir: t.TempDir(), kernel: kernel}
	if err := g.pack(root, files); err != nil {
		t.Fatalf("pack the guest's files: %v", err)
	}
	return g
}

// namespace turns the raw namespace that the guest finds in region %[1]d into one of mode fsdax, whose pages the kernel knows, through sysfs: what ndctl
// create-namespace -m fsdax -M mem does (Documentation/driver-api/nvdimm in Linux). What follows its first pmemStart bytes stays as it is.
const namespace = `
N=/sys/bus/nd; P=$(cat $N/devices/region%[1]d/pfn_seed)
echo namespace%[1]d.0 > $N/drivers/nd_pmem/unbind
cat /proc/sys/kernel/random/uuid > $N/devices/$P/uuid
echo ram > $N/devices/$P/mode
echo 2097152 > $N/devices/$P/align
echo namespace%[1]d.0 > $N/devices/$P/namespace
echo $P > $N/drivers/nd_pmem/bind
`

// guestParts finds the kernel and the programs that a guest needs.
func guestParts() (kernel, root string, err error) {
	for _, exe := range []string{"qemu-system-x86_64", "busybox", "mkfs.ext4", "mkfs.xfs", "mount"} {
		if _, err := exec.LookPath(exe); err != nil {
			return "", "", errors.New(exe + " not found")
		}
	}
	if os.Geteuid() != 0 {
		return "", "", errors.New("only root may mount what a guest has left")
	}
	root, err = guestKernel()
	if err != nil {
		return "", "", err
	}
	found, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil || len(found) == 0 {
		return "", "", fmt.Errorf("no kernel in %s: make test-servers unpacks one there", root)
	}
	return found[0], root, nil
}

// pack makes the guest's root file system.
func (g *Guests) pack(root string, files map[string]string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	all := map[string]string{"bin/busybox": busybox}
	for at, path := range files {
		all[at] = path
	}
	err = filepath.WalkDir(filepath.Join(root, "lib", "modules"), func(path string, _ fs.DirEntry, err error) error {
		if name := strings.TrimSuffix(filepath.Base(path), ".ko"); slices.Contains(modules[:], name) {
			all["mod/"+name+".ko"] = path
		}
		return err
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, dir := range []string{"bin", "mod", "proc", "sys", "dev", "mnt", "tmp"} {
		entry(&out, dir, 0o40755, nil)
	}
	for at, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		entry(&out, at, 0o100755, b)
	}
	entry(&out, "init", 0o100755, []byte(initScript()))
	entry(&out, "TRAILER!!!", 0, nil)
	g.files = out.Bytes()
	return nil
}

// entry writes a file of a cpio archive in the "newc" form: Documentation/driver-api/early-userspace/buffer-format in Linux.
func entry(w io.Writer, name string, mode int, b []byte) {
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		0, mode, 0, 0, 1, 0, len(b), 0, 0, 0, 0, len(name)+1, 0, name)
	pad := func(n int) string { return strings.Repeat("\x00", -n&3) }
	_, _ = io.WriteString(w, header+pad(len(header))+string(b)+pad(len(b))) // to memory
}

// initScript returns the first process of a guest. It runs the boot's script, and ends the guest.
func initScript() string {
	return `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
export PATH=/bin HOME=/tmp
busybox --install -s /bin
for m in ` + strings.Join(modules[:], " ") + `; do [ -f /mod/$m.ko ] && insmod /mod/$m.ko; done
. /run.sh
echo GUEST done
poweroff -f
`
}

// Commands that a guest runs before its boot's script.
const (
	awaitMemory = "i=0; while [ ! -b /dev/pmem%[1]d ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done\n"
	// joinNetwork takes the address and the router that QEMU's user network provides.
	joinNetwork = "ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2\n"
)

// NVDIMM makes persistent memory with a file system, "ext4" or "xfs", in a namespace of mode fsdax.
func (g *Guests) NVDIMM(kind string) Memory {
	g.t.Helper()
	path := filepath.Join(g.dir, kind)
	part := path + ".part"
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Truncate(part, pmemSize-pmemStart); err != nil {
		g.t.Fatal(err)
	}
	mkfs := map[string][]string{"ext4": {"mkfs.ext4", "-q", "-b", "4096"}, "xfs": {"mkfs.xfs", "-q", "-f", "-m", "reflink=0"}}[kind]
	if out, err := exec.Command(mkfs[0], append(mkfs[1:], part)...).CombinedOutput(); err != nil {
		g.t.Fatalf("%s: %v\n%s", mkfs[0], err, out)
	}
	copyAt(g.t, path, part, pmemStart)
	return Memory{path, "nvdimm"}
}

// VirtioPmem makes persistent memory with an ext4 file system on a virtio-pmem device, which has no namespaces.
func (g *Guests) VirtioPmem() Memory {
	g.t.Helper()
	path := filepath.Join(g.dir, "raw")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, pmemSize)); err != nil {
		g.t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-b", "4096", path).CombinedOutput(); err != nil {
		g.t.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
	return Memory{path, "virtio-pmem-pci"}
}

// copyAt copies the nonzero parts of one file into another from an offset on.
func copyAt(t testing.TB, to, from string, off int64) {
	t.Helper()
	src, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	buf, zero := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := off; ; {
		n, err := io.ReadFull(src, buf)
		if n > 0 && !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := dst.WriteAt(buf[:n], at); err != nil {
				t.Fatal(err)
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			if err := dst.Truncate(max(at, pmemSize)); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Guest is a running guest.
type Guest struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Memory is a guest's persistent memory.
type Memory struct {
	Image  string // the file of the host that it is in
	device string
}

// Boot starts a guest with persistent memory, and runs a script in its shell. The first one is its device /dev/pmem0, and so on: NVDIMMs first. It
// ends with the test at the latest.
func (g *Guests) Boot(script string, memory ...Memory) *Guest {
	g.t.Helper()
	devices := []string{"-machine", "q35,nvdimm=on", "-m", "768M,slots=4,maxmem=4G"}
	prepare := ""
	for i, m := range memory {
		devices = append(devices, "-object", fmt.Sprintf("memory-backend-file,id=mem%d,share=on,mem-path=%s,size=%d", i, m.Image, pmemSize),
			"-device", fmt.Sprintf("%s,memdev=mem%d,id=pmem%d", m.device, i, i))
		prepare += fmt.Sprintf(awaitMemory, i)
		if m.device == "nvdimm" {
			prepare += fmt.Sprintf(namespace+awaitMemory, i)
		}
	}
	return g.boot(prepare+script, func(cmd *exec.Cmd) *exec.Cmd { return cmd }, devices...)
}

// BootOn starts a guest without persistent memory on a machine of a network, and runs a script in its shell. The guest's packets come from the
// machine's address. Its clocks are its own, and start at the host's time of day. It ends with the test at the latest.
func (g *Guests) BootOn(m *Machine, script string) *Guest {
	g.t.Helper()
	return g.boot(joinNetwork+script, m.On, "-machine", "q35", "-m", "768M", "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net")
}

// boot starts a guest with devices. on turns QEMU's command into the one to run.
func (g *Guests) boot(script string, on func(*exec.Cmd) *exec.Cmd, devices ...string) *Guest {
	g.t.Helper()
	var own bytes.Buffer // a second archive, after the one that all guests have
	entry(&own, "run.sh", 0o100755, []byte(script))
	entry(&own, "TRAILER!!!", 0, nil)
	initrd := filepath.Join(g.t.TempDir(), "initrd")
	if err := os.WriteFile(initrd, append(own.Bytes(), g.files...), 0o600); err != nil {
		g.t.Fatal(err)
	}
	m := &Guest{t: g.t, done: make(chan struct{})}
	// An emulated processor that got its turn as one of many would be so slow that its worker counted as lost.
	m.cmd = on(exec.Command("nice", append([]string{"-n", "-10", "qemu-system-x86_64"}, append(devices,
		"-accel", "tcg", "-cpu", "max,la57=off", "-smp", "1", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
		"-kernel", g.kernel, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1")...)...))
	m.cmd.Stdout, m.cmd.Stderr = m, m
	if err := m.cmd.Start(); err != nil {
		g.t.Fatalf("start a guest: %v", err)
	}
	late := time.AfterFunc(bootTimeout, m.Kill)
	go func() {
		defer close(m.done)
		_ = m.cmd.Wait() // its output is checked instead
		late.Stop()
	}()
	g.t.Cleanup(func() {
		m.Kill()
		<-m.done
	})
	return m
}

// Write takes the guest's output.
func (m *Guest) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.Write(bytes.ReplaceAll(b, []byte("\r"), nil))
	return len(b), nil
}

func (m *Guest) String() string { return m.Said() }

// Said returns the guest's output so far.
func (m *Guest) Said() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.String()
}

// Kill ends the guest at once, like a loss of power; its persistent memory survives.
func (m *Guest) Kill() {
	_ = m.cmd.Process.Kill() // it may have ended
}

// Wait returns the guest's whole output.
func (m *Guest) Wait() string {
	<-m.done
	return m.Said()
}
