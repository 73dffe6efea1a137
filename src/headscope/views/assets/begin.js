// The page of one example begins at once; a live page, when the first example has come.
try {
  start();
} catch (error) {
  failed(error);
}
