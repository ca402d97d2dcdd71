package ignite

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// items is the one figure that needs no SQL: the number of the cache's entries on all nodes together.
const items = "items"

// figures are the metrics that matter to most measurements: the cache's and its data region's, by Ignite's names. All but items describe the node
// that is asked.
var figures = [...]driver.Figure{
	{Name: items},
	{Name: "CacheGets", Counter: true},
	{Name: "CachePuts", Counter: true},
	{Name: "CacheHits", Counter: true},
	{Name: "CacheMisses", Counter: true},
	{Name: "CacheRemovals", Counter: true},
	{Name: "CacheEvictions", Counter: true},
	{Name: "TotalAllocatedSize", Unit: "bytes"},
	{Name: "TotalUsedSize", Unit: "bytes"},
	{Name: "MaxSize", Unit: "bytes"},
	{Name: "SizeUsedByData", Unit: "bytes"},
	{Name: "TotalUsedPages"},
	{Name: "PagesFillFactor"},
	{Name: "TotalServerNodes"},
}

// Figures lists figures of the cache and its region.
func (Driver) Figures() []driver.Figure { return slices.Clone(figures[:]) }

// Describe returns the unit and kind of a figure: as Figures has it, or inferred from its name.
func (Driver) Describe(name string) driver.Figure {
	if i := slices.IndexFunc(figures[:], func(f driver.Figure) bool { return f.Name == name }); i >= 0 {
		return figures[i]
	}
	f := driver.Figure{Name: name, Counter: strings.HasPrefix(name, "Cache") && strings.HasSuffix(name, "s")}
	if strings.HasSuffix(name, "Size") && !strings.HasPrefix(name, "Cache") {
		f.Unit = "bytes"
	}
	return f
}

// Ids of the two requests that ask for figures.
const (
	askSize = iota + 1
	askMetrics
)

// defaultRegion is the name of the region that holds caches without a region of their own, unless the cluster is configured with another name.
const defaultRegion = "default"

// AppendQuestion asks for the size of the cache, and for the metrics of the cache and its region.
func (Driver) AppendQuestion(dst []byte, link driver.Link) ([]byte, error) {
	c, err := newCodec(link)
	if err != nil {
		return nil, err
	}
	dst = c.appendSize(dst, askSize)
	region := c.region
	if region == "" {
		region = defaultRegion
	}
	where := []string{"NAME = 'cluster.TotalServerNodes'"}
	for _, prefix := range []string{"cache." + c.name + ".", "io.dataregion." + region + "."} {
		where = append(where, fmt.Sprintf("left(NAME, %d) = '%s'", len([]rune(prefix)), strings.ReplaceAll(prefix, "'", "''")))
	}
	return appendSQL(dst, askMetrics, "select NAME, VALUE from METRICS where "+strings.Join(where, " or ")), nil
}

// mostRows bounds the rows of an answer to SQL; a cache and a region have some hundred metrics.
const mostRows = 4096

// appendSQL appends a query of the system's views.
func appendSQL(dst []byte, id uint64, query string) []byte {
	at := len(dst)
	dst = append(appendOp(dst, opSQL, id), 0, 0, 0, 0, 0) // no cache
	dst = appendObject(dst, typeString, "SYS")
	dst = binary.LittleEndian.AppendUint32(dst, mostRows) // rows of a page
	dst = append(dst, 0xff, 0xff, 0xff, 0xff)             // all rows
	dst = appendObject(dst, typeString, query)
	return ended(append(dst, make([]byte, 4+1+6+8+1)...), at) // no arguments, any statement, no options, no timeout, no names of columns
}

// ParseFigures reads the replies to both requests, which come in any order.
func (Driver) ParseFigures(b []byte) (map[string]string, int, error) {
	told, at := map[string]string{}, 0
	for range 2 {
		status, body, n, err := frame(b[at:])
		if n == 0 || err != nil {
			return nil, 0, err
		}
		switch id := binary.LittleEndian.Uint64(b[at+lengthSize:]); {
		case id == askSize && status == noCache: // it is made before the first load
			told[items] = "0"
		case id == askSize && status == 0 && len(body) == 8:
			told[items] = strconv.FormatUint(binary.LittleEndian.Uint64(body), 10)
		case id == askMetrics && status != 0:
			for _, f := range figures[1:] {
				told[f.Name] = "unknown without ignite-indexing"
			}
		case id == askMetrics:
			found, ok := rows(body, 2)
			if !ok {
				return nil, 0, errObjects
			}
			for _, row := range found {
				told[row[0][strings.LastIndexByte(row[0], '.')+1:]] = row[1]
			}
		case status != 0:
			return nil, 0, fmt.Errorf("size of the cache: %w", said(status, body))
		default:
			return nil, 0, errObjects
		}
		at += n
	}
	return told, at, nil
}

// rows reads the first page of an answer to SQL, whose columns are strings; others are "".
func rows(body []byte, columns int) (all [][]string, ok bool) {
	const head = 8 + 4 + 4 // cursor, columns, rows
	if len(body) < head || binary.LittleEndian.Uint32(body[8:]) != uint32(columns) {
		return nil, false
	}
	count := binary.LittleEndian.Uint32(body[12:])
	body = body[head:]
	for range count {
		row := make([]string, columns)
		for i := range row {
			if len(body) > 0 && body[0] == typeNull {
				body = body[1:]
				continue
			}
			text, rest, is := object(body, typeString)
			if !is {
				return nil, false
			}
			row[i], body = string(text), rest
		}
		all = append(all, row)
	}
	return all, len(body) == 1 // whether there is more
}
