"""What is stored: the results of runs on disk, in segments, and in an object store.

It must not know which backend made a run, what `analysis` makes of it, or how it is shown. Reading
results imports and unpickles nothing, and evaluates nothing but the arithmetic of `[metrics]`.
Paths in results are data, and are not followed out of their folder. Files are written aside and
renamed when they are whole.

The key of a run is a hash of its canonical JSON, of the backend, and of the Rust sources
(`crates/py/build.rs`). So a result that is present is the result of exactly this run by exactly
this code.

    folders   a folder for each experiment and backend, and in it one for each run
    format    names of folders and files, keys of runs
    writing   how files are written in folders that others share (`write_new`, `replace_file`,
              `refuse_planted`, `make_own`)
    locks     what campaigns share and cleaning has alone
    sealing   JSON with its own checksum, and JSON from somebody else (`decoded`)
    parquet   Parquet files with units, read within bounds (`open_parquet`)
    segments  runs of large campaigns, many to a file, from the columns of a batch
    tables    flows and histograms, in either
    programs  what the programs of a run left
    columns   Arrow's tables without pandas, which takes as long to load as a thousand short runs
    objects   puts what is finished into an object store, and fetches what is there
    index     `results.json`
    advice    what `redtail advise` says of its runs, for their page
    runs      lists, verifies and cleans what is kept
"""
