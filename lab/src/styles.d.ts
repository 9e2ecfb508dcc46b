// Styles are put into the style sheet of an entry by esbuild.
declare module "*.css";
