package pmlog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// What a recovery reports for each layout: for a new log, five writes, five writes with the last or the last but one torn, and a closed log.
func TestWhatARecoveryCounts(t *testing.T) {
	corrupt := "corrupt"
	for _, k := range kinds() {
		var want []any
		switch o := k.name; {
		case k.holds != nil: // made with a hole
			continue
		case k.slots > 0: // two slots were written, and of a torn one the value before is there
			want = []any{Recovery{}, Recovery{Records: 2}, Recovery{Records: 2, Torn: 1}, Recovery{Records: 2, Torn: 1}, Recovery{Clean: true, Records: 2}}
		case k.length: // only the last piece is read, and none that was durable before its entry
			want = []any{Recovery{}, Recovery{}, Recovery{}, Recovery{}, Recovery{Clean: true}}
			if o == fmt.Sprintf("channel/force=%d", oneForce) {
				want[2] = Recovery{Torn: 1}
			}
		case k.plain && strings.Contains(o, "relaxed=true"):
			one := Recovery{Records: 4, Walked: 4, Holes: 1}
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, one, one, Recovery{Records: 5, Walked: 5}}
		case k.plain:
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, Recovery{Records: 4, Walked: 4, Torn: 1}, corrupt, Recovery{Records: 5, Walked: 5}}
		case k.beside:
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, Recovery{Records: 4, Walked: 4, Torn: 1}, Recovery{Records: 4, Walked: 4, Torn: 1, Holes: 1}, Recovery{Clean: true, Records: 5}}
		case strings.Contains(o, "commit=length"): // the word that commits a record is there
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, corrupt, corrupt, Recovery{Clean: true, Records: 5}}
		default:
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, Recovery{Records: 4, Walked: 4, Torn: 1}, corrupt, Recovery{Clean: true, Records: 5}}
		}
		for i, images := range ended(t, k) {
			regions, _ := over(k, &refusals{}, images)
			s, err := k.open(regions)
			if want[i] == corrupt {
				require.ErrorIs(t, err, ErrCorrupt, "%s, image %d", k.name, i)
				continue
			}
			require.NoError(t, err, "%s, image %d", k.name, i)
			require.Equal(t, want[i], s.recovered(), "%s, image %d", k.name, i)
		}
	}
}

// Records that extend beyond what is read at a time are read separately. A failure of that read is reported, even if the log is being searched for
// records after damage.
func TestEachRefusalToReadALargeRecordIsTold(t *testing.T) {
	const large = windowSize + 1000
	var all []kind
	for _, o := range []AppendOptions{{64, Relaxed, ByChecksum}} {
		all = append(all, kind{
			name: o.name(), sizes: []int64{dataStart + 4*large},
			create: func(r []Region) (subject, error) { return appendSubject(CreateAppend(r[0], o)) },
			open:   func(r []Region) (subject, error) { return appendSubject(OpenAppend(r[0])) },
		})
	}
	for _, o := range []MashonaOptions{{Blocks: true}, {Blocks: true, Relaxed: true}} {
		all = append(all, kind{
			name: fmt.Sprintf("%+v", o), sizes: []int64{4 * large},
			create: func(r []Region) (subject, error) { return mashonaSubject(CreateMashona(r[0], o)) },
			open:   func(r []Region) (subject, error) { return mashonaSubject(OpenMashona(r[0])) },
		})
	}
	o := ArrayOptions{Slots: 2, Capacity: large, Padding: 64}
	all = append(all, kind{
		name: "array", sizes: []int64{ArraySize(o)}, slots: 2,
		create: func(r []Region) (subject, error) { return arraySubject(CreateArray(r[0], o)) },
		open:   func(r []Region) (subject, error) { return arraySubject(OpenArray(r[0])) },
	})
	for _, k := range all {
		regions, bare := over(k, &refusals{}, nil)
		s, err := k.create(regions)
		require.NoError(t, err)
		for n := range 3 {
			require.NoError(t, s.write(0, n%2, bytes.Repeat([]byte{0x51 + byte(n)}, large)), k.name)
		}
		for _, damaged := range []int{-1, 0, 1} {
			image := bytes.Clone(bare[0].Bytes)
			if damaged >= 0 { // the record's first byte, and of a Mashona log its length, by two blocks
				at := bytes.Index(image, bytes.Repeat([]byte{0x51 + byte(damaged)}, 100))
				if at < 0 { // a slot has another value since
					continue
				}
				if image[at] ^= 1; k.name[0] == '{' {
					image[at-6] ^= 2
				}
			}
			reads := 0
			for at := 1; ; at++ {
				r := &refusals{at: at}
				regions, _ := over(k, r, [][]byte{image})
				s, err := k.open(regions)
				if err == nil {
					_, err = s.items()
				}
				if r.failed == "" {
					break
				}
				if r.failed == "ReadAt" {
					reads++
				}
				require.ErrorIs(t, err, errRefused, "%s, record %d damaged: call %d, %s", k.name, damaged, at, r.failed)
			}
			require.Greater(t, reads, 2, "%s, record %d damaged", k.name, damaged)
		}
	}
}

// What the header of a Mashona log says, each field by itself.
func TestWhatAMashonaHeaderMaySay(t *testing.T) {
	for name, c := range map[string]struct {
		at    int64
		bytes string
		want  MashonaOptions
		says  string
	}{
		"as it is":             {0, "TRBAOL01", MashonaOptions{}, ""},
		"another version":      {0, "TRBAOL02", MashonaOptions{}, `it begins with "TRBAOL02"`},
		"blocks":               {8, "\x00\x00\x01\x00", MashonaOptions{Blocks: true}, ""},
		"padding 0":            {8, "\x00\x00\x00\x00", MashonaOptions{}, "its padding is 0"},
		"padding 3":            {8, "\x00\x00\x00\x03", MashonaOptions{}, "its padding is 3"},
		"padding 8":            {8, "\x00\x00\x00\x08", MashonaOptions{}, "its padding is 8"},
		"padding 260":          {8, "\x00\x00\x01\x04", MashonaOptions{}, "its padding is 260"},
		"padding, other order": {8, "\x04\x00\x00\x00", MashonaOptions{}, "its padding is 67108864"},
		"relaxed":              {16, "\x00\x00\x00\x00", MashonaOptions{Relaxed: true}, ""},
		"neither":              {16, "\x00\x00\x00\x02", MashonaOptions{Relaxed: true}, ""},
	} {
		m := &pmemtest.Memory{Bytes: make([]byte, 1024)}
		_, err := CreateMashona(m, MashonaOptions{})
		require.NoError(t, err)
		copy(m.Bytes[c.at:], c.bytes)
		l, err := OpenMashona(m)
		if c.says != "" {
			require.ErrorIs(t, err, ErrCorrupt, name)
			require.ErrorContains(t, err, c.says, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, l.Options(), name)
	}
	_, err := OpenMashona(&pmemtest.Memory{Bytes: make([]byte, mashonaFirst-1)})
	require.ErrorContains(t, err, "read the header")
}
