package keyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bodies opens texts by their paths.
func bodies(of map[string]string) Opener {
	return func(path string) (io.ReadCloser, error) {
		text, there := of[path]
		if !there {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

const vegetaText = `# what a shop is asked
GET http://127.0.0.1:8080/a?q=1#top
X-Name: one
X-Name: two

POST http://127.0.0.1:8080/items
Content-Type: text/plain
# its body
@bodies/item
DELETE http://127.0.0.1:8080
GET http://127.0.0.1:8080/a%20b`

const vegetaJSON = `{"method":"GET","url":"http://127.0.0.1:8080/a?q=1","header":{"X-Name":["one","two"]}}

{"method":"POST","url":"http://127.0.0.1:8080/items","body":"aGVsbG8=","header":{"Content-Type":["text/plain"]}}
{"method":"DELETE","url":"http://127.0.0.1:8080"}
{"method":"GET","url":"HTTP://127.0.0.1:8080/a%20b"}
`

func TestTargets(t *testing.T) {
	want := []string{
		"GET /a?q=1 HTTP/1.1\r\nX-Name: one\r\nX-Name: two\r\n\r\n",
		"POST /items HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
		"DELETE / HTTP/1.1\r\n\r\n",
		"GET /a%20b HTTP/1.1\r\n\r\n",
	}
	for text, line := range map[string]int64{vegetaText: 2, vegetaJSON: 1, strings.ReplaceAll(vegetaText, "\n", "\r\n"): 2, "\ufeff" + vegetaText: 2, "\ufeff" + vegetaJSON: 1} {
		got, err := ReadTargets(strings.NewReader(text), bodies(map[string]string{"bodies/item": "hello"}))
		require.NoError(t, err)
		require.Equal(t, want, keys(got.Set))
		require.Equal(t, "http://127.0.0.1:8080", got.Server)
		require.Equal(t, line, got.Line)
		require.EqualValues(t, 4, got.Count)
		require.Equal(t, got.Set.Bytes(), got.Bytes)
		require.Equal(t, []int{len(want[2]), len(want[1])}, []int{got.Least, got.Largest})
	}
}

// The digest of a file covers the bodies that it names, and can be made by sha256sum.
func TestTargetsDigest(t *testing.T) {
	digest := func(body string) string {
		got, err := ReadTargets(strings.NewReader(vegetaText), bodies(map[string]string{"bodies/item": body}))
		require.NoError(t, err)
		require.Equal(t, []string{"bodies/item"}, got.Bodies)
		return got.SHA256
	}
	body := sha256.Sum256([]byte("hello"))
	all := sha256.Sum256(fmt.Appendf(nil, "%s%x  bodies/item\n", vegetaText, body))
	require.Equal(t, hex.EncodeToString(all[:]), digest("hello"))
	require.NotEqual(t, digest("hello"), digest("hallo"))
}

func TestMistakesInTargets(t *testing.T) {
	const get = "GET http://h/a\n"
	for text, want := range map[string]string{
		"":                                "1:1: no target: write GET and a URL on a line",
		"# nothing\n\n":                   "2:1: no target",
		"http://h/\n":                     `1:1: "http://h/" is not a target: write a method and a URL`,
		get + "\nGET http://h/a b\n":      `3:1: "GET http://h/a b" is not a target`,
		get + "\nget http://h/\n":         `3:1: the method "get": write GET`,
		get + "\nCONNECT http://h/\n":     `3:1: the method "CONNECT"`,
		get + "\nGET /a\n":                `3:1: the URL "/a": write http:// or https://`,
		get + "\nGET ftp://h/a\n":         `3:1: the URL "ftp://h/a"`,
		get + "GET http://u:p@h/a\n":      `2:1: the URL "http://u:p@h/a": write http:// or https://, a host and a path, without a user`,
		get + "X: 1\nGET http://i/a\n":    "3:1: http://i:80 is another server than http://h:80 of line 1: write a file, a dataset and a target for each",
		get + "GET https://h/a\n":         "2:1: https://h:443 is another server than http://h:80 of line 1",
		get + "GET http://h/ä?ö\n":        `2:1: the URL "http://h/ä?ö": escape what is not printable ASCII`,
		get + "GET http://h?a\n\nX\n":     `4:1: "X" is not a target`,
		get + "Name\n":                    `2:1: "Name" is not a header: write NAME: VALUE`,
		get + "Name:\n":                   `2:1: "Name:" is not a header`,
		get + "\nGET http://h/\na b: 1\n": `3:1: "a b" is not a header's name`,
		get + "host: other\n":             "1:1: the header host: leave it out",
		get + "Content-Length: 7\n":       "1:1: the header Content-Length: leave it out",
		get + "A: \x01\n":                 `1:1: the header A has "\x01": write printable ASCII`,
		get + "@none\n":                   "2:1: @none: file does not exist",
		get + "@/etc/passwd\n":            `2:1: @"/etc/passwd": write a path below the directory`,
		get + "@../secret\n":              `2:1: @"../secret": write a path below the directory`,
		get + "@\n":                       `2:1: @"": write a path below the directory`,
		get + "@large\n":                  "1:1: a body of more than the 1048576 bytes",
		get + "A: " + strings.Repeat("a", maxHead) + "\n": "1:1: more than the 32768 bytes that a URL and its headers may have",
		get + "\n{" + strings.Repeat(" ", maxTargetLine):  "3:1: more than the 2097152 bytes that a line may have",
		`{"method":"GET"}`:                                                `1:1: "target: required url is missing": write {`,
		"\n" + `{"method":"GET","url":"http://h/`:                         "2:1: \"parse error: ",
		`{"method":"GET","url":"http://h/","body":"-"}`:                   `1:1: "parse error: illegal base64 data`,
		`{"method":"GET","url":"http://h/"} {}`:                           `1:1: "parse error: `,
		`{"method":"GET","url":"http://h/","header":{"A":["b\r\nC: d"]}}`: `1:1: the header A has "b\r\nC: d"`,
	} {
		_, err := ReadTargets(strings.NewReader(text), bodies(map[string]string{"large": strings.Repeat("x", maxBody+1)}))
		require.ErrorContains(t, err, want, "%.60q", text)
	}
	broken := errors.New("broken")
	_, err := ReadTargets(io.MultiReader(strings.NewReader(get), failing{broken}), nil)
	require.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Each entry is exactly one request: nothing in it starts a header or request that the file does not have.
func FuzzTargets(f *testing.F) {
	f.Add(vegetaText)
	f.Add(vegetaJSON)
	f.Add("GET http://h/\r\nA:b\r\n@bodies/item")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadTargets(strings.NewReader(text), bodies(map[string]string{"bodies/item": "hello"}))
		if err != nil {
			require.LessOrEqual(t, len(err.Error()), 1000)
			return
		}
		for _, request := range keys(got.Set) {
			head, _, whole := strings.Cut(request, "\r\n\r\n")
			require.True(t, whole)
			lines := strings.Split(head, "\r\n")
			require.Regexp(t, `^[A-Z-]+ /[!-~]* HTTP/1\.1$`, lines[0])
			for _, line := range lines[1:] {
				require.Regexp(t, `^[!-9;-~]+: [ -~]*$`, line)
			}
		}
	})
}
