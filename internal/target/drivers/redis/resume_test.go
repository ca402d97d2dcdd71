package redis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestResumeGoesThroughValues byte by byte, including nested values and messages between values: the reply is whole with its last byte, and not
// before.
func TestResumeGoesThroughValues(t *testing.T) {
	two, three := &codec{read: readValue}, &codec{read: readReply}
	for reply, codecs := range map[string][]driver.Resumer{
		"$5\r\nhello\r\n": {two, three},
		"*-1\r\n":         {two, three},
		"*0\r\n":          {two, three},
		"*3\r\n:1\r\n*2\r\n$1\r\nv\r\n*0\r\n-ERR x\r\n":                            {two, three},
		"%2\r\n+a\r\n*1\r\n_\r\n+b\r\n~2\r\n#t\r\n,1.5\r\n":                        {three},
		">2\r\n+message\r\n+x\r\n*2\r\n>1\r\n+y\r\n|1\r\n+k\r\n+v\r\n:1\r\n:2\r\n": {three},
	} {
		for _, c := range codecs {
			var p driver.Progress
			for n := 1; n <= len(reply); n++ {
				whole, err := c.Resume([]byte(reply[:n]), &p)
				require.NoError(t, err, "%q", reply[:n])
				require.Equal(t, n == len(reply), whole, "%q", reply[:n])
			}
			require.Equal(t, len(reply), p.At)
		}
	}
	_, err := two.Resume([]byte(strings.Repeat("*1048576\r\n", 2)), new(driver.Progress))
	require.ErrorContains(t, err, "reply of more than 1048576 values")
}
