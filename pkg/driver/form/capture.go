package form

import (
	"fmt"
	"regexp"

	"github.com/loadgen/loadgen/pkg/driver"
)

const mostCaptured = 8 << 10 // bytes

var captureName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// CheckCapture says what is wrong with the name of a capture.
func CheckCapture(name string) error {
	if !captureName.MatchString(name) {
		return fmt.Errorf("capture has the name %.80q: write a letter, then up to 63 letters, digits, _ and -", name)
	}
	return nil
}

// Capture notes a text, which a selector has found in a reply to an op, under a name. is says what it is if it is no text, such as "missing".
func Capture(into *driver.Bag, op, selector, name string, text []byte, is string) error {
	switch {
	case len(text) > mostCaptured:
		is = fmt.Sprintf("longer than %v", driver.Size(mostCaptured))
	case len(text) > 0:
		into.Put(driver.Noted{Name: "captured." + name, Text: string(text)})
		return nil
	case is == "":
		is = "empty"
	}
	return fmt.Errorf("%s: %s, captured as %s, is %s", op, selector, name, is)
}
