package driver

import "fmt"

// Size is an attribute of a driver's config that is in bytes. A plan may write it as "64MiB".
type Size int64

// String writes a size in the largest unit of which it is a whole number: "64 MiB", "1801 bytes".
func (s Size) String() string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if one := Size(1) << (40 - 10*i); s >= one && s%one == 0 {
			return fmt.Sprintf("%d %s", int64(s/one), unit)
		}
	}
	return fmt.Sprintf("%d bytes", int64(s))
}
