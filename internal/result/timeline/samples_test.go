package timeline

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReadSamples reads untrusted files: what is accepted is written and read again unchanged.
func FuzzReadSamples(f *testing.F) {
	head := strings.Join(sampleColumns, ",") + "\n"
	f.Add(head + "load,get,5,6,7,ok,200,10,20,\nload,get,5,6,7,error,,,,\"a, \"\"b\"\"\"\n")
	f.Add(head + "load,get,-5,6,7,ok,200,10,20,\n")
	f.Fuzz(func(t *testing.T, file string) {
		read := func(file string) (all []Sample, err error) {
			err = ReadSamples(strings.NewReader(file), func(s *Sample) error {
				all = append(all, *s)
				return nil
			})
			return all, err
		}
		want, err := read(file)
		if err != nil {
			return
		}
		var b bytes.Buffer
		w := NewSampleWriter(&b)
		for i := range want {
			require.NoError(t, w.Write(&want[i]))
		}
		require.NoError(t, w.Flush())
		got, err := read(b.String())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
