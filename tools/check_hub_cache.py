"""Check that melm and Python's huggingface_hub share one cache, in both directions, with a local server as the hub.

usage: check_hub_cache.py MELM MODEL_FOLDER     (needs huggingface_hub; MELM is the built program)

Serves the files of MODEL_FOLDER as the model tiny/model. First melm downloads it, and Python must find every file
without a network. Then Python downloads it into an empty cache, and melm must open it without a network.
"""
import hashlib, http.server, json, os, pathlib, subprocess, sys, tempfile, threading

COMMIT, NAME = "0123456789abcdef0123456789abcdef01234567", "tiny/model"


class Handler(http.server.BaseHTTPRequestHandler):
    files = {}

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        path = self.path.split("?")[0]
        if path.startswith(f"/api/models/{NAME}"):
            names = [{"rfilename": name} for name in self.files]
            return self.send(json.dumps({"id": NAME, "sha": COMMIT, "siblings": names}).encode(), {}, with_body)
        name = path.rsplit("/", 1)[-1]
        if name not in self.files:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        content = self.files[name]
        headers = {"X-Repo-Commit": COMMIT}
        if name.endswith(".safetensors"):
            headers.update({"X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Linked-Size": str(len(content))})
        git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.send(content, {**headers, "ETag": f'"{git}"'}, with_body)

    def send(self, content, headers, with_body):
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_):
        pass


def run_melm(melm, folder, environment):
    """Let melm open the model: it prints its class, and trains a tagger for one step."""
    (folder / "train.conll").write_text("Ada B-PER\nspoke O\n\n")
    command = [melm, "train", "train.conll", "-o", "tagger", "--model", NAME, "--updates", "1", "--force", "--device", "cpu"]
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=True, capture_output=True)


def run_python(code, environment):
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def layout(cache):
    """Return every file of the model in a cache, and what it is: its size, or the target of its link."""
    model = cache / f"models--{NAME.replace('/', '--')}"
    kind = lambda path: os.readlink(path) if path.is_symlink() else path.stat().st_size
    paths = [path for path in sorted(model.rglob("*")) if path.is_symlink() or path.is_file()]
    return {str(path.relative_to(model)): kind(path) for path in paths if ".no_exist" not in path.parts}


def main(melm, model):
    Handler.files = {path.name: path.read_bytes() for path in pathlib.Path(model).iterdir()}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours, theirs = folder / "ours", folder / "theirs"
        names = sorted(Handler.files)
        run_melm(melm, folder, {"HF_HUB_CACHE": str(ours), "HF_ENDPOINT": endpoint})
        read = f"""if True:
            import json
            from huggingface_hub import hf_hub_download, snapshot_download, scan_cache_dir
            folder = snapshot_download({NAME!r}, local_files_only=True)
            files = [hf_hub_download({NAME!r}, name, local_files_only=True) for name in {names!r}]
            scanned = scan_cache_dir()
            print(json.dumps([folder, files, [str(w) for w in scanned.warnings], [r.repo_id for r in scanned.repos]]))"""
        found, files, warnings, repositories = run_python(read, {"HF_HUB_CACHE": str(ours), "HF_HUB_OFFLINE": "1"})
        assert found.endswith(COMMIT) and not warnings and repositories == [NAME], (found, warnings, repositories)
        assert all(pathlib.Path(file).read_bytes() == Handler.files[name] for file, name in zip(files, names))
        download = f"""if True:
            import json
            from huggingface_hub import hf_hub_download
            print(json.dumps([hf_hub_download({NAME!r}, name) for name in {names!r}]))"""
        run_python(download, {"HF_HUB_CACHE": str(theirs), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1"})
        run_melm(melm, folder, {"HF_HUB_CACHE": str(theirs), "HF_HUB_OFFLINE": "1"})
        assert layout(ours) == layout(theirs), (layout(ours), layout(theirs))
        print(f"{len(names)} files: Python reads our cache, melm reads Python's, and both have the same {len(layout(ours))} entries")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
