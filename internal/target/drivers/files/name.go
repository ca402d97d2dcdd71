package files

import (
	"fmt"
	"hash/crc32"
	"net/url"
	"strings"
)

const (
	shelves = 256 // directories that files are spread over
	maxName = 255 // bytes of a file's name: NAME_MAX of Linux
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shelfOf returns the number of the subdirectory that a key's file is in.
func shelfOf(key []byte) int { return int(crc32.Checksum(key, castagnoli) % shelves) }

// shelfName returns the name of a subdirectory.
func shelfName(i int) string { return fmt.Sprintf("%02x", i) }

const hexDigits = "0123456789ABCDEF"

// plain reports whether a byte of a key stands for itself in a name.
func plain(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == ':':
		return true
	}
	return c == '.' && !first
}

// appendName appends the name of a key's file.
func appendName(dst, key []byte) []byte {
	if len(key) == 0 {
		return append(dst, '%')
	}
	for i, c := range key {
		if plain(c, i == 0) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

// keyOf returns the key whose file has the name. It reports false if no key's file has it.
func keyOf(name string) (key string, ok bool) {
	if name == "%" {
		return "", true
	}
	key, err := url.PathUnescape(name)
	return key, err == nil && string(appendName(nil, []byte(key))) == name
}

// ours reports whether this driver gives files in a shelf such a name.
func ours(name string) bool {
	if number, draft := strings.CutPrefix(name, ","); draft {
		return number != "" && strings.Trim(number, "0123456789") == ""
	}
	_, ok := keyOf(name)
	return ok
}
