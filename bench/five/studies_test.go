package five

// A study is a published benchmark, and how it is asked again.
type study struct {
	name     string // of its page and its runs
	title    string
	source   string // who measured, when and on what
	question string
	weak     []string // what its numbers could not carry
	plans    []execution
}

// An execution is a plan with what its answers are.
type execution struct {
	name    string // "": the study's
	plan    string // its file's name
	how     string // on what it runs
	chart   string // title of the chart that the page shows
	fleet   bool   // once more with three workers
	answers []answer
}

// An answer is a sentence with one figure: the ratio of a metric between two variants, or a cell of the plan's own table.
type answer struct {
	text   string // "%s" is the figure
	theirs string // the write-up's figure

	of, than string // variants: how many times as large is the metric in `of`
	metric   string // "PHASE OP METRIC"

	row, column string // of the plan's first table that has the row; lo and hi name columns with the ends of its interval
	lo, hi      string
}

// studies are the five, by the year of their write-up.
var studies = []study{
	{
		name: "hydra", title: "Hydra Cache", source: "Hydra Cache's developer, 17 April 2009, on a 2 GHz laptop",
		question: "What do GET and PUT cost on four servers that keep three copies (N = 3, W = 2, R = 1), and do three builds of the server differ?",
		weak: []string{
			"Each build ran once. GET went from 49,000 a minute to 36,000 and to 81,000; the same build was never run twice, so nothing says which of that is chance.",
			"“Reads are 2–3 times faster”: 81,000 is 1.65 times 49,000, and 2.25 times the slower run between.",
			"PUT counts the ramp of 10 s in a run of about a minute, which makes its rate about a tenth too low.",
		},
		plans: []execution{
			{
				name: "hydra", plan: "hydra-table.hcl", how: "Loadgen as the coordinator, on four built-in cache nodes", chart: "To the first and to the last acknowledgement of a put", fleet: true,
				answers: []answer{
					{text: "A PUT that waits for one copy takes %s of the time of one that waits for two.", theirs: "not measured", of: "w1", than: "w2", metric: "put put response.p50"},
					{text: "A PUT that waits for all three takes %s of it.", theirs: "not measured", of: "w3", than: "w2", metric: "put put response.p50"},
				},
			},
			{
				name: "hydra-server", plan: "hydra-server.hcl", how: "Servers that copy by themselves: built-in nodes that answer as Hydra's builds were recorded to; the first two answer alike", chart: "PUT over time",
				answers: []answer{
					{text: "The same build, run again, serves %s times as many GETs a minute: that is chance alone.", theirs: "0.73, of another build", of: "identity", than: "baseline", metric: "get get rate"},
					{text: "The third, which sends a PUT's value back, serves %s times as many GETs.", theirs: "1.65, of another build", of: "guards", than: "baseline", metric: "get get rate"},
					{text: "And %s times as many PUTs.", theirs: "1.22, of another build", of: "guards", than: "baseline", metric: "put put rate"},
				},
			},
		},
	},
	{
		name: "nuxeo", title: "Nuxeo's row cache", source: "Nuxeo, 10 July 2012, on PostgreSQL",
		question: "Does one cache that all sessions share serve pages faster than a cache for each session?",
		weak: []string{
			"Each cache ran once, so 23.5 pages a second twice and 31.5 against 25.3 come without any idea of what chance makes.",
			"With too little memory the shared cache spent more time in SQL for fewer queries: 4.9 ms each instead of 2.4 ms. Sums over a run hide that.",
		},
		plans: []execution{{
			plan: "nuxeo.hcl", how: "Caches that loadgen keeps, in front of a real PostgreSQL", chart: "Pages a second by sessions, with too little memory",
			answers: []answer{
				{text: "With room for all rows, the shared cache serves %s times as many pages a second.", theirs: "1.00", row: "shared", column: "faster"},
				{text: "It sends the database %s times as many queries for a page.", theirs: "0.81", row: "shared", column: "fewer"},
				{text: "With too little memory, it serves %s times as many pages a second.", theirs: "1.25", row: "shared-pressed", column: "faster"},
				{text: "It then sends %s times as many queries for a page.", theirs: "0.66", row: "shared-pressed", column: "fewer"},
			},
		}},
	},
	{
		name: "valkyrie", title: "Valkyrie", source: "Valkyrie's developers, 29 August 2017, on PostgreSQL and Fedora",
		question: "Does a save cost more as their number grows?",
		weak: []string{
			"Each test ran once, up to 59 hours; two runs of Fedora with 100,000 works took 5,601 s and 47,318 s, with another search server beside it.",
			"Only the time of all saves is given, not how the cost of one grows, so that where it began to hurt cannot be read from it.",
		},
		plans: []execution{{
			plan: "valkyrie.hcl", how: "PostgreSQL, Redis, files, and Fedora 4 if there is one", chart: "Members of a work: what a save costs, by its number",
			answers: []answer{
				{
					text: "A work of its own on PostgreSQL: the n-th save costs n to the power of %s. 0 is flat, 1 in proportion.", theirs: "“flat”",
					row: "test=collections,backend=postgres,count=1000", column: "order", lo: "order_lo", hi: "order_hi",
				},
				{
					text: "One more member of a work, on PostgreSQL: to the power of %s.", theirs: "failed before 10,000",
					row: "test=nested,backend=postgres,count=1000", column: "order", lo: "order_lo", hi: "order_hi",
				},
				{
					text: "A file of 1 MB on PostgreSQL: to the power of %s.", theirs: "not measured",
					row: "test=files,backend=postgres,count=1000", column: "order", lo: "order_lo", hi: "order_hi",
				},
			},
		}},
	},
	{
		name: "aldica", title: "aldica", source: "aldica's developers, 30 June 2020, on Apache Ignite in Alfresco",
		question: "What does a record take in a cache, by how it is written, and is it loaded faster the second time if it takes less?",
		weak: []string{
			"Each variant ran once, so that 426 and 442 nodes a second in the first load, or 1,605 and 1,913 in the second, come without any idea of what chance makes.",
			"Memory was read from a heap dump and from regions of fixed pages: it is known to the page, and includes what other caches of the application hold.",
			"The peaks are the largest averages since the start, which differ from the averages by the noise of the first seconds.",
		},
		plans: []execution{{
			plan: "aldica.hcl", how: "Redis and, if there is one, Ignite in front of a real PostgreSQL, 8,000 nodes of three records each; Ignite’s JVM has 192 MiB and starts sooner than it gets fast (C1 only)", chart: "Nodes a second, of the first load and of the second", fleet: true,
			answers: []answer{
				{text: "The properties of a node take %s bytes in Redis as JSON (mean ± 95 %%).", theirs: "1,074, on the heap", row: "json", column: "properties"},
				{text: "Packed, its three records take %s times what they take as JSON.", theirs: "1.13, on the heap and off", row: "packed", column: "node"},
				{text: "With numbers for common words, %s times.", theirs: "0.60", row: "dictionary", column: "node"},
				{text: "The second load of packed records is %s times as fast as that of JSON.", theirs: "1.26", row: "packed", column: "faster"},
				{text: "With numbers for common words, %s times as fast.", theirs: "1.50", row: "dictionary", column: "faster"},
				{text: "In Ignite, the write-up’s cache, the properties of a node take %s bytes as JSON (mean ± 95 %%).", theirs: "1,181, “min”", row: "ignite-json", column: "properties"},
				{text: "With numbers for common words, three records take %s times what JSON takes in Ignite.", theirs: "0.53, “max” by “min”", row: "ignite-dictionary", column: "node"},
				{text: "Their second load is %s times as fast.", theirs: "1.19, “max” by “min”", row: "ignite-dictionary", column: "faster"},
			},
		}},
	},
	{
		name: "mashona", title: "Mashona's log writers", source: "Mashona's README, 2020, on Intel Optane persistent memory",
		question: "How near to the hardware's own speed do logs in mapped memory write?",
		weak: []string{
			"The bound is of several threads, how many is not said, and the log's 0.75 of it is of one; the program's chunks are of 10 MiB by now, and MB and MiB are mixed.",
			"Of append and channel only the order is said, not a figure.",
			"Optane modules are no longer made. Here the logs are on a disk's file system, and sync by msync.",
		},
		plans: []execution{{
			plan: "mashona.hcl", how: "Files of 128 MiB on this machine's disk, without DAX", chart: "MB/s by threads, entries of 1 MiB",
			answers: []answer{
				{
					text: "With one thread, an array of slots of 1 MiB is written at %s times the speed of a loop that only writes.", theirs: "0.75, by MAP_SYNC",
					of: "layout=array,size=1048576,threads=1,sync=msync", than: "layout=raw,size=1048576,threads=1,sync=msync", metric: "write append rate",
				},
				{
					text: "Four threads write it %s times as fast as one.", theirs: "1.21, by MAP_SYNC",
					of: "layout=array,size=1048576,threads=4,sync=msync", than: "layout=array,size=1048576,threads=1,sync=msync", metric: "write append rate",
				},
				{
					text: "An append-only log writes entries of 1 KiB %s times as fast as that loop.", theirs: "not given",
					of: "layout=append,size=1024,threads=1,sync=msync", than: "layout=raw,size=1024,threads=1,sync=msync", metric: "write append rate",
				},
			},
		}},
	},
}
