package redis

import "fmt"

const (
	// maxElements bounds the values within one reply, nested ones included. The longest replies come from a plan's own commands, such as all of a
	// large list.
	maxElements = 1 << 20
	// verbatimHead is the length of a verbatim string's prefix: three letters for its format and a colon.
	verbatimHead = len("txt:")
)

// readReply reads the next value that answers a request. The bytes taken include messages and attributes before it. Like readValue, it reads only the
// header of an aggregate.
func readReply(b []byte) (reply, int, error) {
	at, err := before(b)
	if err != nil || at == len(b) {
		return reply{}, 0, err
	}
	r, n, err := readValue3(b[at:])
	if n == 0 || err != nil {
		return reply{}, 0, err
	}
	return r, at + n, nil
}

// readWhole is readReply for a whole aggregate.
func readWhole(b []byte) (int, error) {
	at, err := before(b)
	if err != nil || at == len(b) {
		return 0, err
	}
	n, err := skip(b[at:])
	if n == 0 || err != nil {
		return 0, err
	}
	return at + n, nil
}

// before returns how many bytes of messages and attributes precede a reply; len(b) if they are incomplete.
func before(b []byte) (int, error) {
	at := 0
	for at < len(b) && (b[at] == '>' || b[at] == '|') {
		n, err := skip(b[at:])
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return len(b), nil
		}
		at += n
	}
	return at, nil
}

// skip returns the length of the value at the front of b with everything nested in it; 0 if it is incomplete. For an attribute, it leaves out the
// value that the attribute describes.
func skip(b []byte) (int, error) {
	at, left := 0, int64(1)
	for seen := int64(0); left > 0; left-- {
		r, n, err := readValue3(b[at:])
		if n == 0 || err != nil {
			return 0, err
		}
		inner := r.elements()
		if seen += inner; seen > maxElements {
			return 0, fmt.Errorf("reply of more than %d values: got %s", maxElements, quote(b))
		}
		left += inner
		if r.kind == attribute && at > 0 { // precedes the value it describes
			left++
		}
		at += n
	}
	return at, nil
}

// elements returns how many values an aggregate's header announces.
func (r *reply) elements() int64 {
	switch r.kind {
	case array, set, push:
		return max(0, r.integer)
	case mapping, attribute:
		return 2 * r.integer
	}
	return 0
}

// readValue3 is readValue for RESP3, including all types of RESP2. It refuses aggregates and strings of unknown length, which no server sends.
func readValue3(b []byte) (reply, int, error) {
	if len(b) == 0 {
		return reply{}, 0, nil
	}
	switch b[0] {
	case '#':
		text, n, err := readWord(b, "tf")
		return reply{kind: scalar, text: text}, n, err
	case ',', '(':
		return readDecimal(b)
	case '=', '!':
		return readLongText(b)
	case '%':
		return readHeader(b, mapping)
	case '~':
		return readHeader(b, set)
	case '>':
		return readHeader(b, push)
	case '|':
		return readHeader(b, attribute)
	}
	r, n, err := readValue(b)
	if err != nil && !isRESP2(b[0]) {
		err = fmt.Errorf("not RESP: got %s", quote(b))
	}
	if r.kind == array && r.integer > maxElements {
		return reply{}, 0, fmt.Errorf("array of %d values is beyond the limit of %d", r.integer, maxElements)
	}
	return r, n, err
}

// readWord reads a line that holds one of the letters, or an empty line if letters is empty.
func readWord(b []byte, letters string) ([]byte, int, error) {
	size := len("_\r\n") + min(1, len(letters))
	for i := 1; i < min(size, len(b)); i++ {
		ok := false
		switch {
		case i == size-2:
			ok = b[i] == '\r'
		case i == size-1:
			ok = b[i] == '\n'
		default:
			for _, letter := range []byte(letters) {
				ok = ok || b[i] == letter
			}
		}
		if !ok {
			return nil, 0, fmt.Errorf("not what follows %q: got %s", b[:1], quote(b))
		}
	}
	if len(b) < size {
		return nil, 0, nil
	}
	return b[1 : size-2 : size-2], size, nil
}

// readDecimal reads a double or a big number as text.
func readDecimal(b []byte) (reply, int, error) {
	text, n, err := readLine(b)
	if n == 0 || err != nil {
		return reply{}, 0, err
	}
	if !isDecimal(text, b[0] == ',') {
		return reply{}, 0, fmt.Errorf("not a number: got %s", quote(b))
	}
	return reply{kind: scalar, text: text}, n, nil
}

// isDecimal reports whether the text is a number: digits with a sign, and for a double a fraction, an exponent, inf or nan.
func isDecimal(text []byte, double bool) bool {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	if double && (string(text) == "inf" || string(text) == "nan") {
		return true
	}
	digits := 0
	for i, c := range text {
		switch {
		case c-'0' <= 9:
			digits++
		case !double || digits == 0 && c != '.':
			return false
		case c == '.', c == 'e', c == 'E':
		case (c == '-' || c == '+') && (text[i-1] == 'e' || text[i-1] == 'E'):
		default:
			return false
		}
	}
	return digits > 0
}

// readLongText reads a verbatim string, without its format prefix, or an error of any length.
func readLongText(b []byte) (reply, int, error) {
	r, n, err := readBulk(b)
	switch {
	case n == 0 || err != nil:
		return reply{}, 0, err
	case r.kind == null:
		return reply{}, 0, fmt.Errorf("text of negative length: got %s", quote(b[:n]))
	case b[0] == '!':
		r.kind = errorReply
		return r, n, nil
	case len(r.text) < verbatimHead || r.text[verbatimHead-1] != ':':
		return reply{}, 0, fmt.Errorf("verbatim string without a format: got %s", quote(b[:n]))
	}
	r.text = r.text[verbatimHead:]
	return r, n, nil
}

// readHeader reads the header of an aggregate that is never null.
func readHeader(b []byte, k kind) (reply, int, error) {
	v, n, err := readNumber(b)
	switch {
	case n == 0 || err != nil:
		return reply{}, 0, err
	case v < 0 || v > maxElements:
		return reply{}, 0, fmt.Errorf("aggregate of %d values, of 0 to %d: got %s", v, maxElements, quote(b[:n]))
	}
	return reply{kind: k, integer: v}, n, nil
}

// isRESP2 reports whether a value of RESP2 begins with the byte.
func isRESP2(c byte) bool {
	switch c {
	case '+', '-', ':', '$', '*', '_':
		return true
	}
	return false
}
