package machine

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Writer is a process and how much it has written to storage.
type Writer struct {
	Name  string
	Bytes int64
}

// Writers returns the other processes by number, those whose figures this one may read: all of its own user's, or for root all.
func Writers(root fs.FS) map[int]Writer {
	all := map[int]Writer{}
	entries, _ := fs.ReadDir(root, "proc") // without it, none is known
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		text, _ := fs.ReadFile(root, "proc/"+e.Name()+"/io")
		name, err := fs.ReadFile(root, "proc/"+e.Name()+"/comm")
		if _, after, ok := strings.Cut(string(text), "\nwrite_bytes: "); ok && err == nil {
			line, _, _ := strings.Cut(after, "\n")
			if n, err := strconv.ParseInt(line, 10, 64); err == nil {
				all[pid] = Writer{strings.TrimSpace(string(name)), n}
			}
		}
	}
	return all
}

// MostWritten names the process that wrote most between two looks; "" if none wrote.
func MostWritten(before, after map[int]Writer) (name string) {
	most := int64(0)
	for pid, w := range after {
		if n := w.Bytes - before[pid].Bytes; n > most {
			most, name = n, w.Name+" (process "+strconv.Itoa(pid)+")"
		}
	}
	return name
}
