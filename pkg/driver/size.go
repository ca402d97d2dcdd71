package driver

import "fmt"

// Size is a driver's config attribute in bytes. A plan may write it as "64MiB".
type Size int64

// String writes a size in the largest unit that divides it evenly: "64 MiB", "1801 bytes".
func (s Size) String() string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if one := Size(1) << (40 - 10*i); s >= one && s%one == 0 {
			return fmt.Sprintf("%d %s", int64(s/one), unit)
		}
	}
	return fmt.Sprintf("%d bytes", int64(s))
}
